"""Stands in for what the Airflow hook uses of Airflow 3."""

import sys
import types


def _module(name, **members):
    module = types.ModuleType(name)
    module.__path__ = []
    vars(module).update(members)
    sys.modules[name] = module


class AirflowException(Exception):
    pass


class AirflowFailException(AirflowException):
    pass


class TaskDeferred(BaseException):
    def __init__(self, *, trigger, method_name, timeout):
        super().__init__()
        self.trigger, self.method_name, self.timeout = trigger, method_name, timeout


class DAG:
    def __init__(self, **_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class BaseOperator:
    template_fields = ()

    def __init__(self, *, task_id, **_):
        self.task_id, self.downstream = task_id, []

    def __rshift__(self, other):
        self.downstream.append(other)
        return other

    def defer(self, **kwargs):
        raise TaskDeferred(**kwargs)


class BashOperator(BaseOperator):
    pass


class BaseTrigger:
    pass


class TriggerEvent:
    def __init__(self, payload):
        self.payload = payload


_module("airflow.exceptions", AirflowException=AirflowException, AirflowFailException=AirflowFailException)
_module("airflow.triggers")
_module("airflow.triggers.base", BaseTrigger=BaseTrigger, TriggerEvent=TriggerEvent)
_module("airflow.sdk", DAG=DAG, BaseOperator=BaseOperator)
_module("airflow.providers")
_module("airflow.providers.standard")
_module("airflow.providers.standard.operators")
_module("airflow.providers.standard.operators.bash", BashOperator=BashOperator)
