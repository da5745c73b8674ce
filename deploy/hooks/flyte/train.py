"""A Flyte task that runs only what weir admits."""

from flytekit import task, workflow
from weir_gate import gated

SPEC = "/specs/train.yaml"


@task(cache=False)  # a cached answer would be yesterday's
@gated(SPEC)
def train(epochs: int) -> str:
    return f"trained for {epochs} epochs"


@workflow
def pipeline(epochs: int = 3) -> str:
    return train(epochs=epochs)
