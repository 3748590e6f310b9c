"""The parts of `hard_cases.py`: cases, methods, runs, what is measured, lines, tables."""
