docker_answers() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }
