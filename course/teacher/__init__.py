"""Scripts for the files in `data/`: the trained models are made here, the numbers by functions in `course/tasks.py`."""
