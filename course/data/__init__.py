"""How what lies in `data/` was made: the trained models here, the numbers by the functions in `course/tasks.py`."""
