"""As much of RIXL's API as an image's check asks: plugins, which are the files that the wheel was made with."""

from pathlib import Path


class nixl_agent_config:  # noqa: N801 - its name in RIXL
    def __init__(self, backends: list[str]) -> None:
        self.backends = backends


class nixl_agent:  # noqa: N801
    def __init__(self, name: str, config: nixl_agent_config) -> None:
        for backend in config.backends:
            if backend not in self.get_plugin_list():
                raise KeyError(backend)

    def get_plugin_list(self) -> list[str]:
        plugins = Path(__file__).parent.glob("libplugin_*.so")
        return sorted(plugin.stem.removeprefix("libplugin_") for plugin in plugins)
