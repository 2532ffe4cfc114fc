"""What makes programs of graphs: passes, more lowering rules, and back ends."""
