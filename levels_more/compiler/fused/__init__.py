"""The back end that fuses ops that follow one another into one program."""
