"""The back end of torch.compile."""
