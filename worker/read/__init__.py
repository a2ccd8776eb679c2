"""Reading the memory and its ledger. Each function takes an open connection, asks once, and returns plain rows.

Rows are dictionaries whose keys are the column names, so that the CLI's JSON, an export and a test all say the same
word for the same thing.
"""
