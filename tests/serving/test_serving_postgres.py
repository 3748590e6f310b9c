"""A door whose ledger is in PostgreSQL."""

from __future__ import annotations

from pathlib import Path

from doors import place_in, remote_data

import fairveil as fv


def test_a_fit_is_paid_in_a_ledger_in_postgresql(tmp_path: Path, postgres_url: str) -> None:
    place = place_in(tmp_path, seeded=False)
    fv.Ledger.create(postgres_url, "behind the door", 5.0, 1e-6)
    text = place.config.read_text()
    place.config.write_text(text.replace('ledger = "budget.db"', f'ledger = "{postgres_url}"\nledger_name = "behind the door"'))
    with remote_data(place) as (data, _, _):
        clf = fv.FermiClassifier(rounds=3).fit(data)
    ledger = fv.Ledger.open(postgres_url, "behind the door")
    assert clf.privacy_.ledger is not None
    assert ledger.check([clf.privacy_.ledger]) == []
    assert (ledger.balance().committed, ledger.balance().open) == (1, 0)
    ledger.close()
