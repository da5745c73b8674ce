"""A Metaflow flow whose step runs only what weir admits: python train_flow.py run"""

from metaflow import FlowSpec, step
from weir_gate import gated

SPEC = "/specs/train.yaml"


class TrainFlow(FlowSpec):
    @step
    def start(self):
        self.next(self.train)

    @step
    @gated(SPEC)  # below @step, so that it is the step that asks
    def train(self):
        self.result = "trained"
        self.next(self.end)

    @step
    def end(self):
        print(self.result)


if __name__ == "__main__":
    TrainFlow()
