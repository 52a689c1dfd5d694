/* Classify two rows by a network that the program is linked with: by typed functions of the header
 * that `weft compile --emit so,header` writes, and by weft.hpp. Built by CMakeLists.txt. */
#include <cstdio>
#include <exception>
#include <vector>

#include "net.h"
#include "weft.hpp"

int main()
try {
	weft::Model net{weft_model()};
	const float x[2][4] = {{0.5f, -1, 0.25f, 2}, {1, 1, -1, 0}};
	float y[2][3];
	WeftStatus status;
	std::uint64_t bytes = 0;
	if (weft_model_run_workspace(net.instance(), 2, &bytes, &status))
		throw weft::Error(status.code, status.message);
	std::vector<char> workspace(bytes);
	if (weft_model_run(net.instance(), 2, x[0], y[0], workspace.data(), bytes, nullptr,
			   &status))
		throw weft::Error(status.code, status.message);
	weft::Results same = net({weft::view(x[0], {2, 4})});
	for (int row = 0; row < 2; row++)
		std::printf("%.4f %.4f %.4f\n", y[row][0], y[row][1], y[row][2]);
	return same[0].as<float>()[5] == y[1][2] ? 0 : 1;
} catch (const std::exception &e) {
	std::fprintf(stderr, "%s\n", e.what());
	return 1;
}
