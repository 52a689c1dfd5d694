/* A simulation of molecules with a learned force field, in float64: force_field FIELD.so STEPS.
 *
 * The program moves four atoms by reference forces, which here are those of a Morse potential, and
 * elsewhere come from an expensive program. What it computes trains the network of FIELD.so, of
 * force_field.py, while it runs. Then it moves the atoms by the forces of the network, and prints
 * how much of the energy is lost on the way. It links nothing of Weft.
 *
 *     cc -O2 force_field.c -I include -ldl -lm -o force_field */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "weft_call.h"

enum { ATOMS = 4, N = 3 * ATOMS, BATCH = 32 };

static double position[BATCH][N], reference[BATCH][1 + N];

/* Sets e[0] to the energy of the reference, e + 1 to its forces. */
static void morse(const double *x, double *e)
{
	memset(e, 0, (1 + N) * sizeof *e);
	for (int a = 0; a < ATOMS; a++)
		for (int b = a + 1; b < ATOMS; b++) {
			double apart[3], r = 0;
			for (int k = 0; k < 3; k++) {
				apart[k] = x[3 * a + k] - x[3 * b + k];
				r += apart[k] * apart[k];
			}
			r = sqrt(r);
			const double well = 1 - exp(-2 * (r - 1.2));
			const double slope = 4 * well * (1 - well);
			e[0] += well * well - 1;
			for (int k = 0; k < 3; k++) {
				e[1 + 3 * a + k] -= slope * apart[k] / r;
				e[1 + 3 * b + k] += slope * apart[k] / r;
			}
		}
}

/* Moves the atoms by one step of Verlet's, with the forces of f before it. */
static void push(double *x, double *v, const double *f, double time)
{
	for (int k = 0; k < N; k++) {
		v[k] += f[k] * time / 2;
		x[k] += v[k] * time;
	}
}

static double energy_of(const double *v, double potential)
{
	for (int k = 0; k < N; k++)
		potential += v[k] * v[k] / 2;
	return potential;
}

/* Puts the atoms at the corners of a tetrahedron, with some velocity. */
static void begin(double *x, double *v, unsigned seed)
{
	static const double corner[N] = {1, 1, 1, 1, -1, -1, -1, 1, -1, -1, -1, 1};
	srand(seed);
	for (int k = 0; k < N; k++) {
		x[k] = corner[k] * 0.45;
		v[k] = (double)rand() / RAND_MAX - 0.5;
	}
}

/* Moves atoms by reference forces, and trains on every batch of what comes by. */
static int train(WeftCall *c, int64_t steps)
{
	double x[N], v[N], e[1 + N], lr = 3e-3;
	const WeftTensor in[] = {weft_tensor(position, WEFT_F64, 3, (int64_t[]){BATCH, ATOMS, 3}),
				 weft_tensor(reference, WEFT_F64, 2, (int64_t[]){BATCH, 1 + N}),
				 weft_tensor(&lr, WEFT_F64, 0, NULL)};
	for (int64_t step = 0; step < steps; step++) {
		begin(x, v, (unsigned)step);
		morse(x, e);
		for (int n = 0; n < BATCH; n++) {
			for (int k = 0; k < 4; k++) {
				push(x, v, e + 1, 0.02);
				morse(x, e);
				for (int j = 0; j < N; j++)
					v[j] += e[1 + j] * 0.01;
			}
			memcpy(position[n], x, sizeof x);
			memcpy(reference[n], e, sizeof e);
		}
		lr = 3e-3 * (1 - 0.9 * (double)step / (double)steps);
		if (weft_call_run(c, in))
			return c->status.code;
		if (step % (steps / 4) == 0 || step == steps - 1)
			printf("step %lld: loss %.3g\n", (long long)step + 1,
			       *(const double *)c->output[0].data);
	}
	return 0;
}

/* Moves two molecules by the forces of the network, and prints how far their energy goes from where
 * it was. */
static int simulate(WeftCall *c)
{
	enum { MANY = 2 };
	double x[MANY][N], v[MANY][N], e[1 + N], f[MANY][1 + N];
	double first = 0, drift = 0, error = 0, size = 0;
	const WeftTensor in = weft_tensor(x, WEFT_F64, 3, (int64_t[]){MANY, ATOMS, 3});
	for (int n = 0; n < MANY; n++)
		begin(x[n], v[n], 12345 + (unsigned)n);
	for (int step = 0; step <= 2000; step++) {
		double all = 0;
		for (int n = 0; step && n < MANY; n++)
			push(x[n], v[n], f[n] + 1, 0.01);
		if (weft_call_run(c, &in))
			return c->status.code;
		memcpy(f, c->output[0].data, sizeof f);
		for (int n = 0; n < MANY; n++) {
			morse(x[n], e);
			for (int k = 0; k < N; k++) {
				v[n][k] += step ? f[n][1 + k] * 0.005 : 0;
				error += fabs(f[n][1 + k] - e[1 + k]);
				size += fabs(e[1 + k]);
			}
			all += energy_of(v[n], f[n][0]);
		}
		first = step ? first : all;
		drift = fmax(drift, fabs(all - first));
	}
	printf("2000 steps: energy %.4f, at most %.4f from there; forces differ by %.1f %%\n",
	       first, drift, 100 * error / size);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return fputs("usage: force_field FIELD.so STEPS\n", stderr), 1;
	void *so = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	void *found = so ? dlsym(so, "weft_model") : NULL;
	if (!found)
		return fprintf(stderr, "%s\n", dlerror()), 1;
	const WeftModel *(*get)(void);
	memcpy(&get, &found, sizeof get);
	WeftCall step, eval = {0};
	int failed = weft_call_open(&step, get(), 0) || train(&step, strtoll(argv[2], NULL, 10));
	if (failed)
		fprintf(stderr, "%s\n", step.status.message);
	else if ((failed = weft_call_open_beside(&eval, &step, "eval") || simulate(&eval)))
		fprintf(stderr, "%s\n", eval.status.message);
	weft_call_close(&eval);
	weft_call_close(&step);
	dlclose(so);
	return failed;
}
