"""Ring 0: the one room that looks at a user's table: containers, columns, missing values, distinct
values, keys."""
