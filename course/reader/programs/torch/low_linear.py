import torch

from course import tasks

task = tasks.linear()
x, y = torch.tensor(task.x), torch.tensor(task.y)
w, b = (torch.tensor(start, requires_grad=True) for start in task.weights)  # model

losses = []
for batch in torch.from_numpy(task.batches[:200]):
    rows, target = x[batch], y[batch]
    prediction = rows @ w + b  # forward
    error = prediction - target
    loss = torch.mean(error * error)  # loss
    loss.backward()  # backward
    with torch.no_grad():
        w -= task.learning_rate * w.grad  # update
        b -= task.learning_rate * b.grad
        w.grad.zero_()
        b.grad.zero_()
    losses.append(loss.item())
