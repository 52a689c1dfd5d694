/* Classify two rows by a compiled network, in C++17:
 *
 *     weft compile net.pt2 -o net.so
 *     c++ -std=c++17 predict.cc -Iinclude -o predict && ./predict net.so
 */
#include <cstdio>
#include <exception>
#include <vector>

#include "weft.hpp"

int main(int argc, char **argv)
try {
	weft::Model net{argc > 1 ? argv[1] : "net.so"};
	std::vector<float> x = {0.5f, -1, 0.25f, 2, 1, 1, -1, 0};
	weft::Results y = net({weft::view(x, {2, 4})});
	weft::Span<float> score = y[0].as<float>();
	for (int row = 0; row < 2; row++)
		std::printf("%.4f %.4f %.4f\n", score[3 * row], score[3 * row + 1],
			    score[3 * row + 2]);
} catch (const std::exception &e) {
	std::fprintf(stderr, "%s\n", e.what());
	return 1;
}
