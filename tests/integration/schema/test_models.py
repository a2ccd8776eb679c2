"""The models name exactly the columns that the migrations made."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, inspect

from worker.models import Base


@pytest.mark.parametrize("table", sorted(Base.metadata.tables))
def test_a_model_names_the_columns_of_its_table(database: Engine, table: str):
    stored = {column["name"]: column["nullable"] for column in inspect(database).get_columns(table)}
    named = {column.name: column.nullable for column in Base.metadata.tables[table].columns}
    assert named == stored
    assert set(inspect(database).get_pk_constraint(table)["constrained_columns"]) == {
        column.name for column in Base.metadata.tables[table].primary_key
    }
