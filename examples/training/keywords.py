"""Keywords by a GRU, for a device that adapts to its user: keywords.py FOLDER writes keywords.pt2, for keywords.c.

    weft compile keywords.pt2 --train "adamw(lr=input)" --loss cross_entropy --clip-norm 1 --accumulate --emit c --target generic-c -o keywords
"""
import pathlib
import sys

import torch
import torch.nn as nn

FRAMES, BANDS, WORDS = 16, 8, 4


class Keywords(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru, self.out = nn.GRU(BANDS, 16, batch_first=True), nn.Linear(16, WORDS)

    def forward(self, sound):
        return self.out(self.gru(sound)[0][:, -1])


if __name__ == "__main__":
    torch.manual_seed(0)
    program = torch.export.export(Keywords(), (torch.randn(1, FRAMES, BANDS),))
    torch.export.save(program, pathlib.Path(sys.argv[1]) / "keywords.pt2")
