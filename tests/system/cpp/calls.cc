/* What weft.hpp promises, by models of tests/system/cpp.sh: calls FOLDER. Prints what is wrong. */
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "weft.hpp"

static int bad;

static void expect(bool right, const char *what)
{
	if (!right)
		std::printf("FAIL: %s\n", what);
	bad += !right;
}

static const std::vector<float> rows = {0.5f, -1, 0.25f, 2, 1, 1, -1, 0};
static const std::array<double, 6> scores = {0.1558, -0.3415, -0.0492, -0.3844, 0.3586, -0.2775};

template <typename T> static bool close_to(const weft::Span<T> &got, std::size_t n)
{
	bool same = got.size() == n;
	for (std::size_t k = 0; same && k < n; k++)
		same = std::fabs(static_cast<double>(got[k]) - scores[k]) < 1e-4;
	return same;
}

/* Expects that a function fails with this code and a sentence that has this text. */
template <typename F> static void refused(F function, int code, const char *text)
{
#ifdef WEFT_NO_EXCEPTIONS
	const auto result = function();
	const int got = result.code();
	const std::string why = result.error();
#else
	int got = WEFT_OK;
	std::string why = "nothing";
	try {
		function();
	} catch (const weft::Error &e) {
		got = e.code();
		why = e.what();
	}
#endif
	const bool right = got == code && why.find(text) != std::string::npos;
	if (!right)
		std::printf("FAIL: %d %s, expected %d %s\n", got, why.c_str(), code, text);
	bad += !right;
}

static void results(const weft::Model &net)
{
	weft::Results y = net({weft::view(rows, {2, 4})});
	expect(y && y.size() == 1 && close_to(y[0].as<float>(), 6), "a call");
	expect(close_to(y["linear_1"].as<const float>(), 6), "a result by name");
	expect(y[0].shape().size() == 2 && y[0].shape()[0] == 2 && y[0].size() == 6,
	       "the shape of a result");
	weft::Results z = std::move(y);
	expect(!y && close_to(z[0].as<float>(), 6), "results that move");
	z = net({{"x", weft::view(rows, {2, 4})}});
	expect(close_to(z[0].as<float>(), 6), "arguments by name");
	z = net({weft::view(rows.data(), {1, 4})});
	expect(close_to(z[0].as<float>(), 3), "another size");
	z = net({weft::view(rows.data(), {0, 4})});
	expect(z && z[0].size() == 0 && z[0].as<float>().empty(), "no rows");
	const float columns[] = {0.5f, 1, -1, 1, 0.25f, -1, 2, 0};
	z = net({weft::view(columns, {2, 4}).strides({1, 2})});
	expect(close_to(z[0].as<float>(), 6), "strides");
	std::array<float, 6> out = {};
	net.into({weft::view(rows, {2, 4})}, {weft::view(out, {2, 3})});
	expect(close_to(weft::Span<float>(out.data(), 6), 6), "what into writes");
	expect(y.size() == 0 && z[0u].size() == 6 && z[std::int64_t{0}].size() == 6,
	       "indices of all types");
	const float one[] = {1, 2, 3};
	expect(weft::view(one).tensor().ndim == 1 && weft::view(&one[0]).tensor().ndim == 0,
	       "arrays");
	expect(net.entry("run").inputs()[0].text() == "x: f32[s77, 4]", "the text of an input");
	expect(net.entry(0).outputs()[0].extent(1) == 3 &&
		       net.entry(0).outputs()[0].extent(0) == -1,
	       "extents");
}

/* A file that was copied by half: an error, and no signal. */
static void half_copied(const std::string &folder)
{
	FILE *from = std::fopen((folder + "/net.so").c_str(), "rb"),
	     *to = std::fopen((folder + "/cut.so").c_str(), "wb");
	char part[8192];
	expect(from && to && std::fread(part, 1, sizeof part, from) == sizeof part &&
		       std::fwrite(part, 1, sizeof part, to) == sizeof part,
	       "a file that is copied by half");
	if (from)
		std::fclose(from);
	if (to)
		std::fclose(to);
#ifdef WEFT_NO_EXCEPTIONS
	expect(!weft::Model(folder + "/cut.so"), "a model that was copied by half");
#else
	refused([&] { weft::Model(folder + "/cut.so"); }, WEFT_ERR_FILE, "cut.so");
#endif
}

static void mistakes(const weft::Model &net)
{
	std::array<float, 6> out = {};
	refused([&] { return net({weft::view(rows)}); }, WEFT_ERR_INPUT, "input x has 1 dimension");
	refused([&] { return net({weft::view(rows, {4, 2})}); }, WEFT_ERR_INPUT,
		"input x: dimension 1 is 2");
	refused([&] { return net(); }, WEFT_ERR_ARGUMENT,
		"the entry has 1 inputs, and the call has 0");
	refused([&] { return net({{"y", weft::view(rows, {2, 4})}}); }, WEFT_ERR_ARGUMENT,
		"there is no input y");
	refused(
		[&] {
			return net(
				{{"x", weft::view(rows, {2, 4})}, {"x", weft::view(rows, {2, 4})}});
		},
		WEFT_ERR_ARGUMENT, "two values for input x");
	refused([&] { return net.into({weft::view(rows, {2, 4})}, {weft::view(out, {3, 2})}); },
		WEFT_ERR_INPUT, "output linear_1");
	refused([&] { return net.into({weft::view(rows, {2, 4})}, {}); }, WEFT_ERR_ARGUMENT,
		"1 outputs");
	const std::array<float, 6> constant = {};
	refused(
		[&] {
			return net.into({weft::view(rows, {2, 4})}, {weft::view(constant, {2, 3})});
		},
		WEFT_ERR_ARGUMENT, "const elements");
	const double wide[4] = {};
	refused([&] { return net({weft::view(wide, {1, 4})}); }, WEFT_ERR_INPUT, "input x");
#ifndef WEFT_NO_EXCEPTIONS
	const weft::Results y = net({weft::view(rows, {2, 4})});
	refused([&] { y[0].as<double>(); }, WEFT_ERR_ARGUMENT, "is f32[2, 3], not f64");
	refused([&] { y["z"]; }, WEFT_ERR_ARGUMENT, "there is no result z, but linear_1");
	refused([&] { y[1]; }, WEFT_ERR_ARGUMENT, "there is no result 1");
	refused([&] { net.entry("none"); }, WEFT_ERR_ARGUMENT, "there is no entry none");
	refused([&] { weft::view(rows, {3, 4}); }, WEFT_ERR_ARGUMENT,
		"8 elements for a tensor f32[3, 4]");
	refused([&] { weft::Model()(); }, WEFT_ERR_ARGUMENT, "not open");
	refused([&] { weft::Model("no.so"); }, WEFT_ERR_FILE, "no.so");
	refused([&] { weft::Model(static_cast<const WeftModel *>(nullptr)); }, WEFT_ERR_ABI,
		"no model");
#else
	const weft::Model none("no.so");
	expect(!none && std::string(none.error()).find("no.so") != std::string::npos,
	       "a file that is missing");
#endif
}

static void weights(weft::Model net)
{
	std::array<float, 3> bias = {}, more = {};
	expect(bool(net.get_weights({{"out.bias", weft::view(bias)}})), "get_weights");
	for (std::size_t k = 0; k < 3; k++)
		more[k] = bias[k] + 1;
	weft::Model other = net.clone();
	expect(bool(other.set_weights({{"out.bias", weft::view(more)}})), "set_weights");
	const weft::Results a = net({weft::view(rows, {2, 4})}),
			    b = other({weft::view(rows, {2, 4})});
	expect(close_to(a[0].as<float>(), 6), "the weights of a model and its clone are their own");
	expect(std::fabs(static_cast<double>(b[0].as<float>()[5]) - scores[5] - 1) < 1e-4,
	       "weights that were set");
	refused([&] { return net.set_weights({{"3.bias", weft::view(more)}}); }, WEFT_ERR_ARGUMENT,
		"3.bias");
}

/* The states of a model with entries step and peek: total, f32[3]; calls, i64. */
static void states(const std::string &path)
{
	weft::Model net{path};
	const std::array<float, 3> x = {1, 2, 3};
	std::array<float, 3> total = {}, first = {};
	std::int64_t calls = -1;
	expect(net.entries() == 2 && net.states().size() == 2 &&
		       net.states()[1].name() == std::string("calls"),
	       "states");
	weft::Entry step = net.entry("step");
	net.get_state("total", weft::view(first));
	step({weft::view(x, {1, 3})});
	expect(bool(step({weft::view(x, {1, 3})})), "step");
	weft::Model before = net.clone();
	net.get_state("total", weft::view(total));
	net.get_state("calls", weft::view(&calls));
	expect(calls == 2 && std::fabs(total[2] - first[2] - 6) < 1e-5f, "state that was written");
	calls = 7;
	net.set_state("calls", weft::view(&calls));
	const weft::Results y = step({weft::view(x, {1, 3})});
	expect(y[1].item<std::int64_t>() == 16, "state that was set");
	net.reset_state();
	net.get_state("calls", weft::view(&calls));
	expect(calls == 0, "state that was reset");
	before.get_state("calls", weft::view(&calls));
	expect(calls == 2, "a clone's state");
	refused([&] { return net.set_state("calls", weft::view(x)); }, WEFT_ERR_INPUT, "calls");
}

/* A model of which the sizes of the results depend on data. */
static void data_sizes(const std::string &path)
{
	weft::Model net{path};
	net.threads(1);
	for (std::int64_t n : {0, 1, 50}) {
		std::vector<float> x(static_cast<std::size_t>(n) * 6);
		for (std::size_t k = 0; k < x.size(); k++)
			x[k] = static_cast<float>(k * 7 % 11) - 5;
		weft::Results y = net({weft::view(x, {n, 6})});
		const std::int64_t kept = y[0].shape()[0];
		expect(kept >= 0 && kept <= n && y[2].shape()[0] == kept,
		       "sizes that depend on data");
		expect(y[2].as<std::int64_t>().size() == static_cast<std::size_t>(kept),
		       "elements of such a size");
		std::vector<float> boxes(200), scores_(50);
		std::vector<std::int64_t> labels(50);
		refused(
			[&] {
				return net.into({weft::view(x, {n, 6})},
						{weft::view(boxes, {50, 4}), weft::view(scores_),
						 weft::view(labels)});
			},
			WEFT_ERR_ARGUMENT, "depends on data");
		expect(y[1].size() == 0 || y[1].as<float>()[0] > 0.3f, "values of such a size");
	}
}

/* Whether a temporary of this type can be viewed: elements would be gone. */
template <typename C, typename = void> struct Viewed : std::false_type {
};
template <typename C>
struct Viewed<C, std::void_t<decltype(weft::view(std::declval<C>()))>> : std::true_type {
};
static_assert(Viewed<std::vector<float> &>::value && Viewed<const std::vector<float> &>::value,
	      "lvalues");
static_assert(!Viewed<std::vector<float>>::value && !Viewed<const std::vector<float>>::value,
	      "temporaries");

/* Many threads call one model. */
static void together(const weft::Model &net)
{
	std::vector<std::thread> all;
	std::array<int, 8> wrong = {};
	for (int t = 0; t < 8; t++)
		all.emplace_back([&, t] {
			for (int k = 0; k < 200; k++) {
				weft::Results y =
					net({weft::view(rows.data(), {1 + (k + t) % 2, 4})});
				wrong[static_cast<std::size_t>(t)] +=
					!close_to(y[0].as<float>(), 3u + 3u * ((k + t) % 2));
			}
		});
	for (std::thread &t : all)
		t.join();
	for (int n : wrong)
		expect(n == 0, "calls of many threads");
}

static void numbers()
{
	const weft::half h[] = {{0x3c00}, {0xc000}, {0x0001}, {0x7c00}, {0x7bff}, {0x8000}};
	expect(static_cast<float>(h[0]) == 1 && static_cast<float>(h[1]) == -2 &&
		       static_cast<float>(h[2]) == 0x1p-24f,
	       "half");
	expect(std::isinf(static_cast<float>(h[3])) && static_cast<float>(h[4]) == 65504 &&
		       std::signbit(static_cast<float>(h[5])),
	       "half at its ends");
	expect(static_cast<float>(weft::bfloat16{0xc0a0}) == -5, "bfloat16");
	static_assert(weft::Element<unsigned char>::dtype.code == WEFT_UINT, "u8");
	static_assert(weft::Element<long>::dtype.bits == sizeof(long) * 8, "long");
	static_assert(weft::Element<bool>::dtype.code == WEFT_BOOL, "bool");
}

int main(int argc, char **argv)
{
	const std::string folder = argc > 1 ? argv[1] : ".";
	weft::Model net{folder + "/net.so"};
	results(net);
	mistakes(net);
	half_copied(folder);
	weights(net);
	together(net);
	states(folder + "/state.so");
	data_sizes(folder + "/head.so");
	numbers();
	weft::Results last = weft::Model{folder + "/net.so"}({weft::view(rows, {2, 4})});
	expect(last[0].name() == std::string("linear_1"), "results that outlive their model");
	return bad != 0;
}
