"""What Ray and vLLM make of many Serve configs: `python mutated_configs.py CASES RESULTS` (JSON files).

CASES is {name: Serve config}. RESULTS {name: null, or the error}. As serve_configs.py; and each engine's arguments
become vLLM's whole configuration, where the model is a folder on this machine.
"""

import json
import logging
import sys
from pathlib import Path
from typing import Any

from own_ray import own_ray
from ray._common.utils import import_attr
from ray.llm._internal.serve.core.configs.llm_config import LLMConfig
from ray.serve._private.api import call_user_app_builder_with_args_if_necessary
from ray.serve._private.application_state import override_deployment_info
from ray.serve._private.build_app import build_app
from ray.serve.schema import ServeDeploySchema
from serve_configs import _as_the_controller_gets_it
from vllm import AsyncEngineArgs
from vllm.config import KVTransferConfig
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory


def judge(config: dict[str, Any]) -> None:
    """Raises what Ray or vLLM raise."""
    schema = ServeDeploySchema.model_validate(config)
    for application in schema.applications:
        app = call_user_app_builder_with_args_if_necessary(import_attr(application.import_path), application.args)
        built = build_app(app, name=application.name)
        override_deployment_info({d.name: _as_the_controller_gets_it(d) for d in built.deployments}, application)
        for deployment in built.deployments:
            if "llm_config" in deployment.init_kwargs:
                _engine(deployment.init_kwargs["llm_config"])


def _engine(config: LLMConfig) -> None:
    arguments = config.get_engine_config().get_initialization_kwargs()
    transfer = arguments.get("kv_transfer_config")
    if transfer:
        KVConnectorFactory.get_connector_class(KVTransferConfig(**transfer))
    if Path(str(arguments.get("model") or config.model_loading_config.model_source)).is_dir():
        source = arguments.pop("model", None) or config.model_loading_config.model_source
        AsyncEngineArgs(model=str(source), **arguments).create_engine_config()


def main(cases: Path, results: Path) -> None:
    logging.disable(logging.WARNING)
    answers: dict[str, str | None] = {}
    with own_ray():
        for name, config in json.loads(cases.read_text()).items():
            try:
                judge(config)
                answers[name] = None
            except Exception as error:
                answers[name] = f"{type(error).__name__}: {error}"[:600]
    results.write_text(json.dumps(answers))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
