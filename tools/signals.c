/* A command that is interrupted leaves nothing behind. */
#include <signal.h>

#include "tool.h"

/* Removes what is temporary, and raises the signal again. The handler is gone by now: the signal
 * ends the process, as whoever sent it expects. */
static void clear_up(int number)
{
	weft_abandon();
	raise(number);
}

void signals_init(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
		struct sigaction now,
			then = {.sa_handler = clear_up, .sa_flags = (int)SA_RESETHAND};
		for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
			sigaddset(&then.sa_mask, numbers[i]);
		/* What is ignored stays so: nohup, and programs in the background. */
		if (sigaction(numbers[k], NULL, &now) == 0 && now.sa_handler == SIG_DFL)
			sigaction(numbers[k], &then, NULL);
	}
}
