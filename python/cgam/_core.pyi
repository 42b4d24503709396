"""The extension module: what it takes and gives is typed where it is called."""
from typing import Any

def __getattr__(name: str) -> Any: ...
