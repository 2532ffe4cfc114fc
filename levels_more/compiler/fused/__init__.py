"""The back end that fuses: ops that follow one another become one program."""
