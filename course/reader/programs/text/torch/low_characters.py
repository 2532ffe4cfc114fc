import torch

from course import prose

train, held = prose.read()
characters = sorted({*train, *held})
rows, targets = prose.windows(prose.codes(train, characters), 32)
width, count = 32, len(characters)
block = [(width, width)] * 4 + [(width, 2 * width), (1, 2 * width), (2 * width, width), (1, width)]
shapes = [(count, width), (32, width), *block, *block, (width, count), (1, count)]
weights = [torch.tensor(w, requires_grad=True) for w in prose.starting_weights(shapes)]
mask = torch.tensor([[0.0 if j <= i else -1e9 for j in range(32)] for i in range(32)], dtype=torch.float64)


def head(h, wq, wk, wv, wo):
    scores = torch.matmul(h @ wq, (h @ wk).transpose(1, 2)) / width**0.5 + mask
    return torch.matmul(torch.softmax(scores, -1), h @ wv) @ wo


def model(x):
    table, places, *blocks, w, b = weights
    h = table[x] + places
    for n in (0, 8):
        *attention, w1, b1, w2, b2 = blocks[n : n + 8]
        h = h + head(h, *attention)
        h = h + torch.relu(h @ w1 + b1) @ w2 + b2
    return h @ w + b  # forward


optimizer = torch.optim.Adam(weights, lr=0.005, eps=1e-7)
losses = []
for batch in prose.batches(len(rows), 200, 8):
    scores, y = model(torch.tensor(rows[batch])), torch.tensor(targets[batch])
    loss = torch.nn.functional.cross_entropy(scores.reshape(-1, count), y.reshape(-1))  # loss
    optimizer.zero_grad()
    loss.backward()  # backward
    optimizer.step()  # update
    losses.append(loss.item())
