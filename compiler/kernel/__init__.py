"""What a fusion becomes: loop nests and contractions with their schedule, target-neutral."""
