"""`modelSource` as a directory: the same one on every node, and in the benchmark's pod for its tokenizer."""

import posixpath

from serving.errors import ConfigError
from serving.kubernetes_names import BENCHMARK_FOLDERS


def check_model_directory(path: str, *, in_pods: bool) -> None:
    """Raises ConfigError for a path that Kubernetes refuses, or under which the benchmark's pod has its own files."""
    plain = posixpath.normpath("/" + path.lstrip("/"))
    if plain != path or not path.isprintable():
        raise ConfigError("modelSource", f"{path!r} is no plain absolute path", f"write {plain}")
    own = [folder for folder in BENCHMARK_FOLDERS if f"{folder}/".startswith(f"{path.rstrip('/')}/")]
    if in_pods and own:
        raise ConfigError(
            "modelSource", f"{path} would hide {own[0]} of the benchmark's pod", "move the model elsewhere"
        )
