"""What random histories found, each as the shortest script that shows it."""

from __future__ import annotations

import pytest

from aegis.chaos.histories import script as s
from aegis.chaos.histories.playing import play


@pytest.mark.parametrize("draw", range(12))
def test_what_was_refused_is_in_no_record_after_a_loss_of_power(draw: int) -> None:
    """The note that took it back was not synced before its caller was told."""
    script = s.Script(
        seed=1,
        clients=3,
        steps=(
            s.OpenQuoteStep(number=0, client=0, terminal=s.SHARED),
            s.ListStep(number=1, client=0),
        ),
        faults=(s.PowerLossFault(step=1, after_s=0, draw=draw),),
    )
    outcome = play(script)
    assert outcome.violations == ()
    assert outcome.hits == {"power loss": 1}
    assert outcome.evidence.refused == ("@shared.0@",)
