	return 0; }
int main(int argc, char **argv) {
	turn = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0); pids = turn + 8; dev = argv[argc - 1];
	for (proc = 0; proc < PROCS; proc++) if (!fork()) { pids[proc] = getpid(); signal(SIGUSR1, on_signal); setlinebuf(stdout);
		for (long t = 0; t < 3; t++) { pthread_create(threads + t, 0, play, (void *)t); }
		while (*turn < STEPS) { usleep(1000); } sleep(1); _exit(0); }
	while (wait(0) > 0) { } return 0; }
