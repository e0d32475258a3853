"""Setting `cluster.nodes.tolerations`: taints of nodes that engine pods tolerate."""

from typing import Any, Literal

from pydantic import model_validator

from serving.kubernetes_grammar import LabelKey, LabelValue
from serving.settings_base import Settings


class Toleration(Settings):
    """A pod's toleration, in the words of the Kubernetes API.

    A toleration with a value and no operator is Equal, as there. One with neither is Exists, and not, as there, Equal
    to an empty value: who names a key alone means the taint whatever its value.
    """

    key: LabelKey
    operator: Literal["Exists", "Equal"] = "Exists"
    value: LabelValue | None = None
    effect: Literal["NoSchedule", "NoExecute", "PreferNoSchedule"] | None = None

    @model_validator(mode="before")
    @classmethod
    def _a_value_counts(cls, values: Any) -> Any:
        if isinstance(values, dict) and values.get("value") is not None and "operator" not in values:
            return {**values, "operator": "Equal"}
        return values

    @model_validator(mode="after")
    def _exists_with_any_value(self) -> "Toleration":
        if self.operator == "Exists" and self.value:
            raise ValueError("operator Exists takes no value: remove it, or set operator: Equal")
        return self
