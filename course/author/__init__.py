"""What makes the course: its setup and commands, the builder, the site, the programs' runs, the bench, the pictures."""
