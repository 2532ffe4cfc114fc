"""Small programs for what runs op by op."""
