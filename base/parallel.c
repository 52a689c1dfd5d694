#include "base/parallel.h"

#include <pthread.h>

void parallel_run(uint32_t jobs, void *(*work)(void *arg), void *arg)
{
	enum { MOST = 16 }; /* memory is no faster with more */
	pthread_t thread[MOST];
	uint32_t n = 0;
	while (n + 1 < jobs && n < MOST - 1 && pthread_create(&thread[n], NULL, work, arg) == 0)
		n++;
	work(arg);
	while (n)
		pthread_join(thread[--n], NULL);
}
