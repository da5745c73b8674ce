"""Runs a Python hook as its framework would: drive.py HOOK SPEC.

Prints TRAINED only if the hook let the training run, and ends with the exit code
of the GateError otherwise, after its one line.
"""

import asyncio
import importlib
import os
import sys
import traceback

HOOKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def load(folder, module, spec):
    """Imports a hook with the path of its spec replaced, as somebody who pastes it would."""
    with open(os.path.join(HOOKS, folder, module + ".py"), encoding="utf-8") as file:
        text = file.read()
    loaded = type(sys)(module)
    loaded.__file__ = os.path.join(HOOKS, folder, module + ".py")
    sys.modules[module] = loaded
    exec(compile(text.replace("/specs/train.yaml", spec), module, "exec"), vars(loaded))
    return loaded


def flyte(spec):
    assert load("flyte", "train", spec).pipeline(epochs=2) == "trained for 2 epochs"


def ray(spec):
    train, client = load("ray", "train", spec), importlib.import_module("ray")
    try:
        assert client.get(train.train.remote(2)) == "trained for 2 epochs"
    except client.exceptions.RayTaskError as err:
        raise err.cause from None


def metaflow(spec):
    load("metaflow", "train_flow", spec).TrainFlow()


def trainer(spec):
    from transformers import Trainer

    hook = load("trainer", "weir_callback", spec)
    run = Trainer(callbacks=[hook.WeirCallback(spec)])
    try:
        run.train()
    except BaseException:
        assert run.steps == 0, "a step was trained"
        raise


def verified(spec):
    from transformers import Trainer

    hook = load("trainer", "weir_callback", spec)
    Trainer(callbacks=[hook.WeirCallback(spec, verify=lambda admission, raw: None)]).train()


def axolotl(spec):
    from transformers import Trainer

    os.environ["WEIR_SPEC"] = spec
    hook = load("trainer", "weir_callback", spec)
    Trainer(callbacks=hook.WeirPlugin().add_callbacks_pre_trainer(None, None)).train()


def airflow(spec):
    framework = importlib.import_module("airflow")
    operator = load("airflow", "weir_operator", spec)
    dag = load("airflow", "example_dag", spec)
    assert dag.gate.downstream == [dag.train]
    try:
        try:
            assert dag.gate.execute({})
        except framework.TaskDeferred as deferred:
            print("DEFERRED", flush=True)
            path, kwargs = deferred.trigger.serialize()
            assert path == "weir_operator.WeirTrigger" and deferred.timeout and "key" not in kwargs
            event = asyncio.run(first(operator.WeirTrigger(**kwargs)))
            assert getattr(dag.gate, deferred.method_name)({}, event=event.payload)
    except framework.AirflowException as err:
        # A task that failed for good is not tried again, one without an answer is.
        assert isinstance(err, framework.AirflowFailException) == (err.__cause__.exit_code != 20)
        raise err.__cause__ from None


async def first(trigger):
    async for event in trigger.run():
        return event


def kubeflow(spec):
    pipeline = load("kubeflow", "pipeline", spec).pipeline("s3://specs/train.yaml")
    assert pipeline is None
    importer, gate, train = importlib.import_module("kfp").tasks
    assert gate.caching is False and set(gate.env) == {"WEIR_SERVER", "WEIR_KEY"}
    assert gate.inputs == train.inputs == {"spec": importer} and train.before == [gate]


def main():
    hook, spec = sys.argv[1:]
    from weir_gate import GateError

    try:
        globals()[hook](spec)
    except GateError as err:
        print("closed:", err, file=sys.stderr)
        return err.exit_code
    except BaseException:
        traceback.print_exc()
        return 1
    print("TRAINED")
    return 0


if __name__ == "__main__":
    sys.exit(main())
