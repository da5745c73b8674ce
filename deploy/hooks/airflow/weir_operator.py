"""An Airflow operator that lets a DAG go on only if weir admits the spec.

Put it into the plugins or dags folder, beside the package weir_gate. Workers and
the triggerer need WEIR_SERVER and WEIR_KEY.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, AsyncIterator, Callable

from airflow.exceptions import AirflowException, AirflowFailException
from airflow.triggers.base import BaseTrigger, TriggerEvent

from weir_gate import Admission, Gate, GateError, NoAnswer, Pending

try:
    from airflow.sdk import BaseOperator  # Airflow 3
except ImportError:
    from airflow.models import BaseOperator


class WeirTrigger(BaseTrigger):
    """Fires when people have decided, whatever they decided."""

    def __init__(self, screening: str) -> None:
        super().__init__()
        self.screening = screening

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return ("weir_operator.WeirTrigger", {"screening": self.screening})  # no key: it would be stored

    async def run(self) -> AsyncIterator[TriggerEvent]:
        while True:
            try:
                if (await asyncio.to_thread(Gate().wait, self.screening, 30)).final:
                    yield TriggerEvent(self.screening)
                    return
            except NoAnswer:
                await asyncio.sleep(30)  # an outage while people think is no answer


class WeirGateOperator(BaseOperator):
    """Fails if weir blocks the spec, and waits on the triggerer while people decide."""

    template_fields = ("spec",)

    def __init__(self, *, spec: str, wait: timedelta = timedelta(days=3), **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.spec = spec
        self.wait = wait

    def execute(self, context: Any) -> str:
        try:
            return self.ask(Gate().admit)
        except Pending as err:
            self.defer(trigger=WeirTrigger(err.screening), method_name="execute_complete", timeout=self.wait)
        raise AirflowFailException("the gate was not asked")  # defer does not return

    def execute_complete(self, context: Any, event: Any) -> str:
        try:
            return self.ask(Gate().check)  # the event says when to ask, not what the answer is
        except Pending as err:
            raise AirflowFailException(str(err)) from err

    def ask(self, question: Callable[[str], Admission]) -> str:
        try:
            return question(self.spec).screening
        except Pending:
            raise
        except NoAnswer as err:
            raise AirflowException(str(err)) from err  # Airflow may try again
        except GateError as err:
            raise AirflowFailException(str(err)) from err  # trying again is no use
