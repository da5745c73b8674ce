"""Asks weir before step 0 of a Transformers or Axolotl training.

    Trainer(…, callbacks=[WeirCallback("train.yaml")])

Axolotl: put this file on the path, set WEIR_SPEC, and in the config
``plugins: [weir_callback.WeirPlugin]``.
"""

from __future__ import annotations

import os
from typing import Any, Optional

from transformers import TrainerCallback
from weir_gate import Gate, Spec, Verify


class WeirCallback(TrainerCallback):
    """Raises before the first step unless the gate admits exactly this spec.

    Every process asks, so that none trains on the word of another. ``verify``
    looks at the signed admission too, and raises if it does not like it.
    """

    def __init__(self, spec: Optional[Spec] = None, *, verify: Optional[Verify] = None) -> None:
        self.spec = spec if spec is not None else os.environ["WEIR_SPEC"]
        self.verify = verify

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        Gate().admit(self.spec, verify=self.verify)


try:
    from axolotl.integrations.base import BasePlugin
except ImportError:  # plain Transformers
    pass
else:

    class WeirPlugin(BasePlugin):
        def add_callbacks_pre_trainer(self, cfg: Any, model: Any) -> list:
            return [WeirCallback()]
