"""What teachers need: grades, with students' code in a process of its own, and the timetables of TEACHING.md."""
