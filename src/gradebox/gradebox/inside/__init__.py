"""What runs beside the student's code, in the sandbox. Nothing of the grader's own knowledge is
here: no expected output, no other student, no hidden input before it is needed."""
