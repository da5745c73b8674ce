"""A Kubeflow pipeline that trains only what weir admits."""

from pathlib import Path

from kfp import components, dsl, kubernetes

ask_weir = components.load_component_from_file(str(Path(__file__).parent / "component.yaml"))
SERVER = "https://weir.example"


@dsl.container_component
def train(spec: dsl.Input[dsl.Artifact]):
    return dsl.ContainerSpec(image="registry.example/trainer:1", command=["train", spec.path])


@dsl.pipeline(name="train")
def pipeline(spec_uri: str):
    spec = dsl.importer(artifact_uri=spec_uri, artifact_class=dsl.Artifact, reimport=True).output
    gate = ask_weir(spec=spec)
    gate.set_caching_options(False)  # a cached answer would be yesterday's
    gate.set_env_variable("WEIR_SERVER", SERVER)
    kubernetes.use_secret_as_env(gate, secret_name="weir", secret_key_to_env={"key": "WEIR_KEY"})
    train(spec=spec).after(gate)
