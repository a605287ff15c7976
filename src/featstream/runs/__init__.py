"""What a selector has found, on disk and back: run folders."""

from featstream.runs.folder import Checkpoint, RunFolder
from featstream.runs.session import resume

__all__ = ["Checkpoint", "RunFolder", "resume"]
