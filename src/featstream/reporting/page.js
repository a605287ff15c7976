"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const make = (name, text, kind) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (kind) element.className = kind;
    return element;
  };

  /* Detail of marks: on hover, on touch, and by the arrow keys. */
  const tip = make("div", "", "tip");
  tip.hidden = true;
  tip.setAttribute("role", "status");
  document.body.append(tip);
  let lit = null;
  const light = (mark) => {
    if (lit) lit.classList.remove("lit");
    lit = mark;
    tip.hidden = !mark;
    if (!mark) return;
    mark.classList.add("lit");
    tip.textContent = mark.dataset.tip;
    const box = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
    const x = Math.min(Math.max(8, box.left + box.width / 2 - own.width / 2), innerWidth - own.width - 8);
    const above = box.top - own.height - 10;
    tip.style.left = `${Math.max(8, x)}px`;
    tip.style.top = `${above > 8 ? above : Math.min(box.bottom + 10, innerHeight - own.height - 8)}px`;
  };
  document.addEventListener("pointerover", (event) => {
    const mark = event.target.closest ? event.target.closest("[data-tip]") : null;
    if (mark !== lit) light(mark);
  });
  addEventListener("scroll", () => light(document.activeElement.contains(lit) && lit.closest(".picture:focus") ? lit : null), { passive: true, capture: true });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return light(null);
    const picture = document.activeElement;
    if (!picture || !picture.classList.contains("picture")) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const marks = [...picture.querySelectorAll("[data-tip]")].filter((mark) => mark.getClientRects().length);
    if (!marks.length) return;
    const at = marks.indexOf(lit);
    light(marks[at < 0 ? (step > 0 ? 0 : marks.length - 1) : (at + step + marks.length) % marks.length]);
  });
  document.addEventListener("focusout", (event) => {
    if (event.target.classList && event.target.classList.contains("picture")) light(null);
  });

  /* Tables that can be sorted and searched. */
  const valueOf = (row, column) => {
    const cell = row.cells[column];
    return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim().toLowerCase();
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("th button");
    if (!button) return;
    const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
    const rows = [...body.rows];
    const isNumber = rows.length && "value" in rows[0].cells[head.cellIndex].dataset;
    const before = head.getAttribute("aria-sort");
    const isDown = before ? before === "ascending" : isNumber;
    const sign = isDown ? -1 : 1;
    const keyed = rows.map((row) => [valueOf(row, head.cellIndex), row]);
    keyed.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
    for (const other of table.querySelectorAll("th[aria-sort]")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    body.append(...keyed.map(([, row]) => row));
  });
  const filter = () => {
    const input = $("filter"), table = $("kept-table");
    if (!input || !table) return;
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      row.hidden = wanted !== "" && !row.textContent.toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    $("filter-count").textContent = wanted ? `${shown.toLocaleString("en")} found` : "";
  };
  document.addEventListener("input", (event) => { if (event.target.id === "filter") filter(); });

  /* Why was a feature dropped? The fates are unpacked at the first search. */
  const inflate = async (text) => {
    const raw = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([raw]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  /* Numbers of four bytes: first the lowest bytes of all. */
  const words = (bytes, begin, n) => {
    const found = new Uint32Array(n);
    for (let b = 3; b >= 0; b--) for (let i = 0; i < n; i++) found[i] = found[i] * 256 + bytes[begin + b * n + i];
    return found;
  };
  const increasing = async (packed) => {
    const found = words(await inflate(packed.data), 0, packed.n);
    for (let i = 1; i < packed.n; i++) found[i] += found[i - 1];
    return found;
  };
  const open = async () => {
    const packed = JSON.parse($("fates").textContent);
    const found = { packed, position: new Map(), nameAt: new Map() };
    if (!packed.n) return found;
    const bytes = await inflate(packed.data), { n } = packed;
    /* How many of the first features have at least this fate: 1 is relevant, 2 has a witness. */
    found.rank = (end, least) => {
      let count = 0;
      for (let i = 0; i < end; i++) count += bytes[i] >= least;
      return count;
    };
    found.fates = bytes.subarray(0, n);
    found.withScore = packed.relevantOnly ? 1 : 0;
    found.places = packed.places && await increasing(packed.places);
    found.witnesses = await increasing(packed.witnesses);
    found.witness = words(bytes, n, found.rank(n, 2));
    const nScores = packed.digits ? found.rank(n, found.withScore) : 0;
    found.scores = new Float32Array(words(bytes, n + 4 * found.witness.length, nScores).buffer);
    if (packed.names !== null) {
      const names = new TextDecoder().decode(await inflate(packed.names)).split("\n");
      const at = packed.namedAt ? await increasing(packed.namedAt) : found.places;
      names.forEach((name, i) => {
        const place = at ? at[i] : i;
        found.nameAt.set(place, name);
        if (!found.position.has(name)) found.position.set(name, place);
      });
    }
    return found;
  };
  const scoreText = (found, i) => {
    const { digits } = found.packed;
    if (!digits || found.fates[i] < found.withScore) return "(not kept in this page)";
    const score = Number(found.scores[found.rank(i, found.withScore)].toPrecision(digits));
    return digits === 2 ? `about ${score}` : `${score}`;
  };
  const nameOf = (found, place) => found.nameAt.get(place) ?? `x${place}`;
  const otherOf = (found, i) => {
    const place = found.witnesses[found.witness[found.rank(i, 2)]];
    return place === undefined ? "others" : nameOf(found, place);
  };
  const placeOf = (found, query) => {
    if (found.position.has(query)) return found.position.get(query);
    const clipped = query.slice(0, 299) + "…";
    if (query.length > 299 && found.position.has(clipped)) return found.position.get(clipped);
    const plain = /^x?(\d+)$/.exec(query);
    if (!plain) return null;
    const place = Number(plain[1]);
    return query[0] === "x" && found.nameAt.has(place) && found.nameAt.get(place) !== query ? null : place;
  };
  const explain = (found, query) => {
    const { packed } = found;
    if (!packed.n) return [["No fates are recorded in this page: the selection was made without a trace.", ""]];
    const place = placeOf(found, query);
    const i = found.places ? found.places.indexOf(place) : place !== null && place < packed.n ? place : -1;
    if (i < 0) {
      let text = `No feature ${query.slice(0, 80)} is recorded in this page.`;
      if (place !== null && place < packed.nSeen) text = `Feature ${nameOf(found, place)} was seen; it was never kept, and this page does not say why.`;
      else if (packed.named === "relevant" || packed.named === "once kept") text += ` Names are kept here only of features that were ${packed.named === "relevant" ? "relevant" : "once kept"}; others are found by their position.`;
      const close = [...found.position.keys()].filter((word) => word.toLowerCase().includes(query.toLowerCase())).slice(0, 5);
      return close.length ? [[text, ""], [`Similar names: ${close.join(", ")}`, "meta"]] : [[text, ""]];
    }
    const code = found.fates[i];
    const given = { name: nameOf(found, place), relevance: scoreText(found, i), other: code >= 2 ? otherOf(found, i) : "" };
    const reason = packed.reasons[code].replace(/\{(name|relevance|other)\}/g, (_, key) => given[key]);
    return [[reason, ""], [`Position ${place.toLocaleString("en")} in the source.`, "meta"]];
  };
  let opened = null;
  document.addEventListener("submit", async (event) => {
    if (event.target.id !== "why") return;
    event.preventDefault();
    const answer = $("answer"), query = $("why-name").value.trim();
    answer.replaceChildren();
    if (!query) return;
    try {
      opened ??= await open();
      for (const [text, kind] of explain(opened, query)) answer.append(make("p", text, kind));
    } catch (error) {
      answer.append(make("p", `This browser cannot unpack the fates (${error.message}). Use: featstream explain`, ""));
    }
  });

  /* A page that is served during a run is kept up to date. */
  if (document.body.dataset.live !== undefined) {
    const events = new EventSource("events");
    events.addEventListener("update", (event) => {
      light(null);
      for (const [id, markup] of Object.entries(JSON.parse(event.data))) {
        const old = $(id);
        if (old) old.outerHTML = markup;
      }
      filter();
    });
    const over = (text) => {
      events.close();
      const status = $("status");
      if (status) { status.textContent = text; status.classList.add("over"); }
    };
    events.addEventListener("end", (event) => over(JSON.parse(event.data)));
    events.addEventListener("error", () => { if (events.readyState !== 1) over("The connection has ended: the run is over, or was stopped."); });
  }
})();
