"""The parts of `hard_cases.py`: cases, rows, methods, what is measured, tables, a picture."""
