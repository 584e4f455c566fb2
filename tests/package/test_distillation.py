"""The loss against worked numbers; a teacher that hears what the student hears, and stays fixed."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close

from vitbook.data import augmentation
from vitbook.models.distillation import WithTeacher, distillation_loss
from vitbook.training import TrainConfig, evaluate, train

B, K = 4, 3


def logits():
    return torch.randn(B, K), torch.randn(B, K), torch.tensor([0, 2, 1, 2])


def net(dropout=0.0):
    return nn.Sequential(
        nn.Flatten(), nn.Linear(12, 8), nn.BatchNorm1d(8), nn.Dropout(dropout), nn.Linear(8, K)
    )


def test_the_loss_of_one_image_worked_out_by_hand():
    # T = 2: the student says (1/2, 1/2), the teacher (1/3, 2/3); hard: label 0, p = 1/2
    student, teacher = torch.zeros(1, 2), torch.tensor([[0.0, 2 * math.log(2)]])
    soft = 1 / 3 * math.log(2 / 3) + 2 / 3 * math.log(4 / 3)
    loss = distillation_loss(student, teacher, torch.tensor([0]), share=0.25, temperature=2.0)
    assert loss.item() == pytest.approx(0.75 * math.log(2) + 0.25 * 4 * soft, rel=1e-5)


def test_a_share_of_zero_is_cross_entropy_and_a_share_of_one_does_not_see_the_labels():
    student, teacher, labels = logits()
    hard = distillation_loss(student, teacher, labels, share=0)
    assert_close(hard, F.cross_entropy(student, labels))
    soft = [distillation_loss(student, teacher, y, share=1.0) for y in (labels, labels.roll(1))]
    assert_close(*soft)


def test_a_student_who_says_what_the_teacher_says_pays_nothing_for_it():
    student, _, labels = logits()
    student = student.double()  # single precision loses 5² times its last digit
    loss = distillation_loss(student, student + 3, labels, share=1.0, temperature=5.0)
    assert abs(loss.item()) < 1e-12


def test_while_training_both_answer_the_same_images_and_only_the_student_moves():
    torch.manual_seed(0)
    student, teacher, images = net(), net(dropout=0.5), torch.randn(6, 3, 2, 2)
    before = {name: tensor.clone() for name, tensor in teacher.state_dict().items()}
    pair = WithTeacher(student, teacher).train()
    assert student.training
    assert not teacher.training
    ours, told = pair(images)
    assert_close(told, teacher(images))
    assert not told.requires_grad
    assert ours.requires_grad
    labels = torch.tensor([0, 1, 2, 0, 1, 2])
    first = student[1].weight.clone()
    loss = {"loss_function": lambda both, labels: distillation_loss(*both, labels)}
    config = TrainConfig(steps=5, batch_size=3, warmup_steps=0)
    train(pair, images, labels, config, augment=augmentation(flip=True), progress=False, **loss)
    assert not torch.equal(student[1].weight, first)
    assert all(torch.equal(tensor, before[name]) for name, tensor in teacher.state_dict().items())
    assert not pair.training
    assert_close(pair(images), student(images))
    assert evaluate(pair, images, labels).count == 6


def test_the_gradient_goes_to_the_student_only():
    student, teacher, labels = logits()
    student.requires_grad_(), teacher.requires_grad_()
    distillation_loss(student, teacher, labels).backward()
    assert student.grad.abs().sum() > 0
    assert teacher.grad is None


BAD_INPUT = [
    (lambda: call(teacher=torch.zeros(B, K + 1)), ValueError, "the student's shape (4, 3"),
    (lambda: call(student=torch.zeros(K)), ValueError, "student must have the axes (B, K)"),
    (lambda: call(teacher=torch.zeros(B, K).long()), TypeError, "teacher must hold"),
    (lambda: call(share=1.5), ValueError, "share must be at least 0 and at most 1"),
    (lambda: call(temperature=0), ValueError, "temperature must be finite and greater"),
    (lambda: WithTeacher(net(), nn.Linear), TypeError, "teacher must be a torch.nn.Mod"),
]


def call(**changed):
    student, teacher, labels = logits()
    given = {"student": student, "teacher": teacher, "labels": labels} | changed
    return distillation_loss(**given)
