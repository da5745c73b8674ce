"""Trains only what weir admits."""

from datetime import timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

from weir_operator import WeirGateOperator

SPEC = "/specs/train.yaml"

with DAG(dag_id="train", schedule=None) as dag:
    gate = WeirGateOperator(task_id="gate", spec=SPEC, wait=timedelta(days=3), retries=2)
    train = BashOperator(task_id="train", bash_command=f"train {SPEC}")
    gate >> train
