"""A Ray task that runs only what weir admits. Give the workers the key:

    ray.init(runtime_env={"env_vars": {"WEIR_SERVER": …, "WEIR_KEY": …}})
"""

import ray
from weir_gate import GateError, gated

SPEC = "/specs/train.yaml"


@ray.remote(max_retries=0)
@gated(SPEC)  # asked where it trains, right before it trains
def train(epochs: int) -> str:
    return f"trained for {epochs} epochs"


if __name__ == "__main__":
    try:
        print(ray.get(train.remote(3)))
    except ray.exceptions.RayTaskError as err:
        cause = err.cause
        raise SystemExit(cause.exit_code if isinstance(cause, GateError) else 1) from err
