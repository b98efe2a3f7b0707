"""Operations, one record each."""
