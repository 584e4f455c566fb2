#!/usr/bin/env bash
# Gradescope calls this once, when the image is built; the network can be reached then.
set -euo pipefail
apt-get update -q
apt-get install -qy --no-install-recommends bubblewrap libseccomp2 ca-certificates python3-pip
# A Python of its own, where every user may read it: the sandbox runs as another user.
export UV_PYTHON_INSTALL_DIR=/opt/python
pip3 install --break-system-packages uv || pip3 install uv
uv venv --python 3.12 /opt/gradebox
uv pip install --python /opt/gradebox/bin/python --torch-backend cpu \
  -r /autograder/source/requirements.txt
site=$(/opt/gradebox/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
cp -r /autograder/source/packages/. "$site/"
# Hidden tests are read by the grader, which is root here, and by nobody else.
chmod 700 /autograder/source
