/* A compiled model in C++17: open, call, read the results.
 *
 *     weft::Model net{"net.so"};               // loaded; weft::Model net{weft_model()}: linked
 *     std::vector<float> x(2 * 64);
 *     weft::Results y = net({weft::view(x, {2, 64})});
 *     for (float v : y["logits"].as<float>())
 *             std::printf("%g\n", v);
 *
 * Ownership. A Model is a reference to an open instance: its copies, entries and results keep the
 * instance open, and the last of them closes it. Results own the memory of the outputs. View,
 * Output, Info and Span refer to memory of others and own nothing.
 *
 * Threads. Any number of threads may call one Model at the same time, by the rules of
 * WeftModel.run: a call that would write state of which another call is in progress fails with
 * WEFT_ERR_BUSY. Change `context` and weights before the calls.
 *
 * Errors are exceptions of type weft::Error. In programs that are compiled without exceptions, or
 * with WEFT_NO_EXCEPTIONS defined, a Model, Results or Status that failed is false, and its error()
 * is the reason; mistakes of the program itself (a name that does not exist, as<T>() of another
 * dtype) print the reason and abort.
 *
 * Memory. A call allocates one block for its results; `into` writes to memory of the caller
 * instead. The workspace of a call is kept for the next one. Link with -ldl where libc does not
 * have dlopen. */
#ifndef WEFT_HPP
#define WEFT_HPP

#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft_file.h"
#include "weft_model.h"
#include "weft_view.hpp"

namespace weft
{
#ifdef WEFT_NO_EXCEPTIONS
inline namespace returned
{
#else
inline namespace thrown
{
#endif

/* ---- an open model ---- */

/* How to open a model; see WeftOpen. */
struct Open {
	std::string symbol = "weft_model"; /* weft compile --symbol */
	std::string weights;               /* the weight file; empty: the one beside the model */
	bool verify = false;               /* compare the weights with their checksum */
	WeftDevice device = {0, 0};
};

namespace detail
{

/* The memory of one call in progress. */
struct Room {
	WeftSizes *sizes = nullptr;
	WeftTensor *input = nullptr, *output = nullptr;
	void *work = nullptr;
	std::uint64_t work_bytes = 0;

	explicit Room(const WeftEntry *e)
	    : sizes(static_cast<WeftSizes *>(std::malloc(e->sizes_bytes))),
	      input(static_cast<WeftTensor *>(std::calloc(e->ninput + 1u, sizeof *input))),
	      output(static_cast<WeftTensor *>(std::calloc(e->noutput + 1u, sizeof *output)))
	{
	}
	Room(const Room &) = delete;
	Room &operator=(const Room &) = delete;
	~Room()
	{
		std::free(sizes);
		std::free(input);
		std::free(output);
		std::free(work);
	}
	/* Whether there is memory for a call that needs a workspace of `bytes`. */
	bool fits(std::uint64_t bytes)
	{
		if (bytes <= work_bytes)
			return true;
		std::free(work);
		work = std::malloc(bytes);
		work_bytes = work ? bytes : 0;
		return work != nullptr;
	}
};

/* The memory of calls that have ended, for the next ones. Any number of threads may use it. */
class Rooms
{
      public:
	Rooms() = default;
	Rooms(const Rooms &) = delete;
	Rooms &operator=(const Rooms &) = delete;
	~Rooms()
	{
		for (auto &slot : slot_)
			delete slot.load(std::memory_order_relaxed);
	}
	/* Returns the memory of an earlier call, or new memory; NULL if there is none. */
	Room *take(const WeftEntry *e)
	{
		for (auto &slot : slot_)
			if (slot.load(std::memory_order_relaxed))
				if (Room *r = slot.exchange(nullptr, std::memory_order_acquire))
					return r;
		Room *r = new (std::nothrow) Room(e);
		if (r && r->sizes && r->input && r->output)
			return r;
		delete r;
		return nullptr;
	}
	void give(Room *r)
	{
		for (auto &slot : slot_) {
			Room *none = nullptr;
			if (slot.compare_exchange_strong(none, r, std::memory_order_release,
							 std::memory_order_relaxed))
				return;
		}
		delete r;
	}

      private:
	std::atomic<Room *> slot_[16] = {};
};

/* A library that was loaded, closed by the last model in it. */
struct Library {
	void *handle;
	explicit Library(void *h) : handle(h)
	{
	}
	Library(const Library &) = delete;
	Library &operator=(const Library &) = delete;
	~Library()
	{
		if (handle)
			dlclose(handle);
	}
};

/* An instance, with all that its calls share. */
struct Instance {
	std::shared_ptr<Library> library; /* closed behind the instance */
	const WeftModel *table = nullptr;
	WeftInstance *instance = nullptr;
	std::unique_ptr<Rooms[]> rooms; /* by entry */
	WeftContext context = {};

	Instance(std::shared_ptr<Library> l, const WeftModel *m)
	    : library(std::move(l)), table(m), rooms(new Rooms[m->nentry])
	{
		context.size = sizeof context;
	}
	Instance(const Instance &) = delete;
	Instance &operator=(const Instance &) = delete;
	~Instance()
	{
		if (instance)
			table->close(instance);
	}
	/* Frees memory that the context's allocator made. */
	void release(void *p, std::size_t bytes) noexcept
	{
		if (context.free)
			context.free(context.alloc_user, p, bytes);
		else
			std::free(p);
	}
};

} // namespace detail

/* The results of a call. Owns their memory. */
class Results
{
      public:
	Results() = default;
	Results(Results &&other) noexcept
	    : status_(std::move(other.status_)), of_(std::move(other.of_)), entry_(other.entry_),
	      block_(std::exchange(other.block_, nullptr)), end_(other.end_)
	{
	}
	Results &operator=(Results &&other) noexcept
	{
		std::swap(status_, other.status_);
		std::swap(of_, other.of_);
		std::swap(entry_, other.entry_);
		std::swap(block_, other.block_);
		std::swap(end_, other.end_);
		return *this;
	}
	~Results()
	{
		drop();
	}

	explicit operator bool() const noexcept
	{
		return block_ != nullptr;
	}
	const char *error() const noexcept
	{
		return status_.error();
	}
	int code() const noexcept
	{
		return status_.code();
	}
	std::size_t size() const noexcept
	{
		return block_ ? entry_->noutput : 0;
	}

	/* Returns result k, or the one of a name. The results must outlive what is returned. */
	Output operator[](std::size_t k) const &
	{
		if (k >= size())
			detail::mistake("there is no result " + std::to_string(k) + ", but " +
					std::to_string(size()) + " of them");
		return Output(block_ + k, info(k)->name);
	}
	template <typename I, std::enable_if_t<std::is_integral_v<I>, int> = 0>
	Output operator[](I k) const &
	{
		return (*this)[static_cast<std::size_t>(k)];
	}
	Output operator[](const char *name) const &
	{
		std::string names;
		for (std::size_t k = 0; k < size(); k++) {
			if (!std::strcmp(info(k)->name, name))
				return (*this)[k];
			names += std::string(k ? ", " : "") + info(k)->name;
		}
		detail::mistake("there is no result " + std::string(name) + ", but " + names);
	}
	Output operator[](const std::string &name) const &
	{
		return (*this)[name.c_str()];
	}
	Output operator[](std::size_t) const && = delete;
	template <typename I, std::enable_if_t<std::is_integral_v<I>, int> = 0>
	Output operator[](I) const && = delete;
	Output operator[](const char *) const && = delete;
	Output operator[](const std::string &) const && = delete;

      private:
	friend class Entry;
	explicit Results(Status s) : status_(std::move(s))
	{
	}
	Results(const std::shared_ptr<detail::Instance> &of, const WeftEntry *e)
	    : of_(of), entry_(e)
	{
	}

	const WeftTensorInfo *info(std::size_t k) const
	{
		return weft_output(of_->table, entry_, static_cast<std::uint32_t>(k));
	}
	/* Whether there is memory for the outputs of these sizes: one block of the tensors, their
	 * extents, and the elements of each output of which the size is known. */
	bool make(const WeftSizes *s)
	{
		const std::int64_t *extent = s->slot + entry_->nsymbol;
		const std::size_t n = entry_->noutput;
		std::size_t extents = 0, bytes = 0;
		for (std::size_t k = 0; k < n; extents += info(k)->rank, k++)
			bytes += room_of(*info(k), extent + extents);
		const std::size_t head =
			(n + 1) * sizeof(WeftTensor) + extents * sizeof *extent + 64;
		void *all = std::malloc(head + bytes); /* aligned_alloc is slower */
		if (!all)
			return false;
		block_ = static_cast<WeftTensor *>(all);
		end_ = static_cast<char *>(all) + head + bytes;
		char *data = reinterpret_cast<char *>(
			padded(reinterpret_cast<std::uintptr_t>(end_ - bytes - 63)));
		std::int64_t *copy = reinterpret_cast<std::int64_t *>(block_ + n + 1);
		std::memcpy(copy, extent, extents * sizeof *extent);
		for (std::size_t k = 0; k < n; copy += info(k)->rank, k++) {
			const std::size_t room = room_of(*info(k), copy);
			block_[k] = {room ? data : nullptr,
				     {WEFT_CPU, 0},
				     static_cast<std::int32_t>(info(k)->rank),
				     info(k)->dtype,
				     copy,
				     nullptr,
				     0};
			data += room;
		}
		return true;
	}
	static std::size_t padded(std::size_t bytes)
	{
		return (bytes + 63) & ~static_cast<std::size_t>(63);
	}
	/* Returns the bytes that an output takes, at least 64; 0 if an extent depends on data. */
	static std::size_t room_of(const WeftTensorInfo &info, const std::int64_t *extent)
	{
		std::size_t bytes = info.dtype.bits / 8u;
		for (std::uint32_t d = 0; d < info.rank; d++) {
			if (extent[d] < 0)
				return 0;
			bytes *= static_cast<std::size_t>(extent[d]);
		}
		return padded(bytes | 1);
	}
	/* Frees the block, and the memory that `run` allocated for outputs of sizes that depend on
	 * data. */
	void drop() noexcept
	{
		if (!block_)
			return;
		for (std::size_t k = 0;
		     entry_->flags & WEFT_ENTRY_DATA_SIZES && k < entry_->noutput; k++) {
			char *data = static_cast<char *>(block_[k].data);
			const std::size_t bytes =
				detail::elements(block_[k]) * (block_[k].dtype.bits / 8u);
			if (data && (data < reinterpret_cast<char *>(block_) || data >= end_))
				of_->release(data, bytes);
		}
		std::free(block_);
		block_ = nullptr;
	}

	Status status_;
	std::shared_ptr<detail::Instance> of_;
	const WeftEntry *entry_ = nullptr;
	WeftTensor *block_ = nullptr;
	char *end_ = nullptr;
};

/* A function of a model, such as "prefill" or "decode". */
class Entry
{
      public:
	Entry(std::shared_ptr<detail::Instance> of, std::uint32_t number)
	    : of_(std::move(of)), entry_(of_->table->entry[number]), number_(number)
	{
	}
	const char *name() const noexcept
	{
		return entry_->name;
	}
	const WeftEntry *table() const noexcept
	{
		return entry_;
	}
	std::vector<Info> inputs() const
	{
		std::vector<Info> all;
		for (std::uint32_t k = 0; k < entry_->ninput; k++)
			all.emplace_back(of_->table, weft_input(of_->table, entry_, k));
		return all;
	}
	std::vector<Info> outputs() const
	{
		std::vector<Info> all;
		for (std::uint32_t k = 0; k < entry_->noutput; k++)
			all.emplace_back(of_->table, weft_output(of_->table, entry_, k));
		return all;
	}

	/* Runs the entry on inputs in the model's order, or by name. */
	Results operator()() const
	{
		return call(static_cast<const View *>(nullptr), 0);
	}
	Results operator()(std::initializer_list<View> in) const
	{
		return call(in.begin(), in.size());
	}
	Results operator()(std::initializer_list<Named> in) const
	{
		return call(in.begin(), in.size());
	}
	Results call(const View *in, std::size_t n) const
	{
		WeftStatus status;
		Results y(of_, entry_);
		status.message[0] = 0;
		const int code = compute(in, n, y, &status);
		if (code) {
			y.drop();
			y.status_ = detail::failed(code, status.message);
		}
		return y;
	}
	Results call(const Named *in, std::size_t n) const
	{
		std::vector<View> ordered;
		std::string wrong = order(in, n, ordered);
		return wrong.empty() ? call(ordered.data(), n)
				     : Results(detail::failed(WEFT_ERR_ARGUMENT, wrong));
	}
	/* Runs the entry and writes the outputs to memory of the caller: row-major, of the shapes
	 * that the outputs have, which no data changes. Allocates nothing once a call of these
	 * sizes was made. */
	Status into(std::initializer_list<View> in, std::initializer_list<View> out) const
	{
		return into(in.begin(), in.size(), out.begin(), out.size());
	}
	Status into(const View *in, std::size_t n, const View *out, std::size_t nout) const
	{
		WeftStatus status;
		status.message[0] = 0;
		const int code = compute_into(in, n, out, nout, &status);
		return code ? detail::failed(code, status.message) : Status();
	}

      private:
	friend class Model;

	/* Sets code and sentence. Returns the code. */
	static int fail(WeftStatus *status, int code, const char *why) noexcept
	{
		status->code = code;
		std::snprintf(status->message, sizeof status->message, "%s", why);
		return code;
	}
	static int count(WeftStatus *status, const char *what, std::size_t want,
			 std::size_t n) noexcept
	{
		char why[96];
		std::snprintf(why, sizeof why, "the entry has %zu %s, and the call has %zu", want,
			      what, n);
		return fail(status, WEFT_ERR_ARGUMENT, why);
	}
	/* Solves the sizes of a call, and makes its workspace. Returns WEFT_OK or an error code. */
	int begin(detail::Room *r, const View *in, std::size_t n, WeftStatus *status) const noexcept
	{
		if (!r)
			return fail(status, WEFT_ERR_MEMORY, "out of memory");
		if (n != entry_->ninput)
			return count(status, "inputs", entry_->ninput, n);
		for (std::size_t k = 0; k < n; k++)
			r->input[k] = in[k].tensor();
		const int code =
			of_->table->sizes(of_->instance, number_, r->input, r->sizes, status);
		if (!code && !r->fits(r->sizes->workspace_bytes))
			return fail(status, WEFT_ERR_MEMORY, "out of memory");
		return code;
	}
	int run(detail::Room *r, WeftTensor *out, WeftStatus *status) const noexcept
	{
		return of_->table->run(of_->instance, r->sizes, r->input, out, r->work,
				       &of_->context, status);
	}
	int compute(const View *in, std::size_t n, Results &y, WeftStatus *status) const noexcept
	{
		detail::Room *r = of_->rooms[number_].take(entry_);
		int code = begin(r, in, n, status);
		if (!code && !y.make(r->sizes))
			code = fail(status, WEFT_ERR_MEMORY, "out of memory");
		if (!code)
			code = run(r, y.block_, status);
		if (r)
			of_->rooms[number_].give(r);
		return code;
	}
	int compute_into(const View *in, std::size_t n, const View *out, std::size_t nout,
			 WeftStatus *status) const noexcept
	{
		detail::Room *r = of_->rooms[number_].take(entry_);
		int code = begin(r, in, n, status);
		if (!code && nout != entry_->noutput)
			code = count(status, "outputs", entry_->noutput, nout);
		for (std::size_t k = 0; !code && k < nout; k++)
			code = place(r, k, out[k], status);
		if (!code)
			code = run(r, r->output, status);
		if (r)
			of_->rooms[number_].give(r);
		return code;
	}
	/* Takes a view as the place of output k. Returns WEFT_OK or an error code. */
	int place(detail::Room *r, std::size_t k, const View &v, WeftStatus *status) const noexcept
	{
		const std::uint32_t number = static_cast<std::uint32_t>(k);
		const WeftTensorInfo *info = weft_output(of_->table, entry_, number);
		const std::int64_t *extent =
			weft_output_shape(of_->table, entry_, r->sizes, number);
		char why[200];
		for (std::uint32_t d = 0; d < info->rank; d++)
			if (extent[d] < 0) {
				std::snprintf(
					why, sizeof why,
					"into: the size of output %.80s depends on data: make a "
					"call that returns results",
					info->name);
				return fail(status, WEFT_ERR_ARGUMENT, why);
			}
		if (v.constant()) {
			std::snprintf(why, sizeof why,
				      "into: output %.80s would be written to const elements",
				      info->name);
			return fail(status, WEFT_ERR_ARGUMENT, why);
		}
		r->output[k] = v.tensor();
		return WEFT_OK;
	}
	/* Puts arguments in the order of the inputs. Returns an empty text, or a sentence. */
	std::string order(const Named *in, std::size_t n, std::vector<View> &ordered) const
	{
		for (std::size_t k = 0; k < n; k++)
			if (!find(in[k].name))
				return "there is no input " + std::string(in[k].name) + " of " +
				       name();
		for (const Info &want : inputs()) {
			std::size_t have = 0;
			for (std::size_t k = 0; k < n; k++)
				if (!std::strcmp(in[k].name, want.name()) && !have++)
					ordered.push_back(in[k].value);
			if (have != 1)
				return std::string(have ? "two values for" : "no value for") +
				       " input " + want.text();
		}
		return "";
	}
	bool find(const char *input) const
	{
		for (const Info &have : inputs())
			if (!std::strcmp(have.name(), input))
				return true;
		return false;
	}

	std::shared_ptr<detail::Instance> of_;
	const WeftEntry *entry_;
	std::uint32_t number_;
};

class Model
{
      public:
	/* A model that is not open. */
	Model() = default;
	/* Loads and opens the file of a model. A path without a slash is a file in the current
	 * folder. */
	explicit Model(const std::string &path, const Open &how = Open())
	{
		const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
		WeftStatus told;
		if (const int code = weft_file_check(file.c_str(), &told)) {
			status_ = detail::failed(code, told.message);
			return;
		}
		auto library = std::make_shared<detail::Library>(
			dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL));
		if (!library->handle) {
			status_ = detail::failed(WEFT_ERR_FILE, dlerror());
			return;
		}
		const WeftModel *table = find(library->handle, how);
		if (table)
			open(table, how, std::move(library));
		else
			status_ = detail::failed(WEFT_ERR_FILE,
						 path + " has no function " + how.symbol +
							 ": it is no compiled model, or has "
							 "another name (--symbol)");
	}
	/* Opens a model that the program is linked with. */
	explicit Model(const WeftModel *linked, const Open &how = Open())
	{
		open(linked, how, nullptr);
	}

	explicit operator bool() const noexcept
	{
		return of_ != nullptr;
	}
	const char *error() const noexcept
	{
		return of_ ? "" : status_ ? "the model is not open" : status_.error();
	}

	/* Runs the first entry. */
	Results operator()() const
	{
		return first()();
	}
	Results operator()(std::initializer_list<View> in) const
	{
		return first()(in);
	}
	Results operator()(std::initializer_list<Named> in) const
	{
		return first()(in);
	}
	Status into(std::initializer_list<View> in, std::initializer_list<View> out) const
	{
		return first().into(in, out);
	}

	std::size_t entries() const
	{
		return of().table->nentry;
	}
	Entry entry(std::size_t k) const
	{
		if (k >= entries())
			detail::mistake("there is no entry " + std::to_string(k));
		return Entry(of_, static_cast<std::uint32_t>(k));
	}
	template <typename I, std::enable_if_t<std::is_integral_v<I>, int> = 0>
	Entry entry(I k) const
	{
		return entry(static_cast<std::size_t>(k));
	}
	Entry entry(const char *name) const
	{
		for (std::uint32_t k = 0; k < entries(); k++)
			if (!std::strcmp(of_->table->entry[k]->name, name))
				return Entry(of_, k);
		detail::mistake("there is no entry " + std::string(name));
	}
	Entry entry(const std::string &name) const
	{
		return entry(name.c_str());
	}

	/* How calls run: threads, memory, device, profile. Change it before the calls. */
	WeftContext &context() const
	{
		return of().context;
	}
	/* Sets the most threads that a call uses; 0: the number of processors. */
	void threads(int n) const
	{
		context().nthreads = n;
	}

	/* State: copies of the current values, row-major, and the initial contents again. */
	std::vector<Info> states() const
	{
		std::vector<Info> all;
		for (std::uint32_t k = 0; k < of().table->nstate; k++)
			all.emplace_back(of_->table, weft_state_info(of_->table, k));
		return all;
	}
	Status get_state(const char *name, const View &to) const
	{
		if (to.constant())
			detail::mistake("get_state: state " + std::string(name) +
					" would be written to const elements");
		const WeftTensor t = to.tensor();
		return done([&](WeftStatus *s) {
			return of_->table->state_get(of_->instance, state(name), &t, s);
		});
	}
	Status set_state(const char *name, const View &from) const
	{
		const WeftTensor t = from.tensor();
		return done([&](WeftStatus *s) {
			return of_->table->state_set(of_->instance, state(name), &t, s);
		});
	}
	Status reset_state() const
	{
		return done(
			[&](WeftStatus *s) { return of_->table->state_reset(of_->instance, s); });
	}
	/* Returns a model with the same weights and a copy of the state. */
	Model clone() const
	{
		Model m;
		auto copy = std::make_shared<detail::Instance>(of().library, of_->table);
		copy->context = of_->context;
		m.status_ = done([&](WeftStatus *s) {
			return of_->table->clone(of_->instance, &copy->instance, s);
		});
		if (m.status_)
			m.of_ = std::move(copy);
		return m;
	}

	/* Replaces weights of a model that was compiled with --replaceable-weights, or copies their
	 * values out; flags: WEFT_IGNORE_UNKNOWN. */
	Status set_weights(const std::vector<Named> &values, std::uint32_t flags = 0) const
	{
		return weights(values, flags, of().table->set_weights);
	}
	Status get_weights(const std::vector<Named> &values, std::uint32_t flags = 0) const
	{
		for (const Named &n : values)
			if (n.value.constant())
				detail::mistake("get_weights: weight " + std::string(n.name) +
						" would be written to const elements");
		return weights(values, flags, of().table->get_weights);
	}

	const WeftModel *table() const
	{
		return of().table;
	}
	WeftInstance *instance() const
	{
		return of().instance;
	}

      private:
	using Weights = int (*)(WeftInstance *, std::uint32_t, const char *const *,
				const WeftTensor *, const WeftContext *, WeftStatus *);

	/* Returns the table in a loaded library, or NULL. */
	static const WeftModel *find(void *library, const Open &how)
	{
		const bool device = how.device.type == WEFT_CUDA;
		void *symbol = device ? dlsym(library, (how.symbol + "_device").c_str()) : nullptr;
		if (symbol)
			return reinterpret_cast<const WeftModel *(*)(std::int32_t, std::int32_t)>(
				symbol)(how.device.type, how.device.id);
		symbol = dlsym(library, how.symbol.c_str());
		return symbol ? reinterpret_cast<const WeftModel *(*)()>(symbol)() : nullptr;
	}
	void open(const WeftModel *m, const Open &how, std::shared_ptr<detail::Library> library)
	{
		if (const char *wrong = weft_model_check(m)) {
			status_ = detail::failed(WEFT_ERR_ABI, wrong);
			return;
		}
		WeftOpen options = {};
		options.size = sizeof options;
		options.flags = how.verify ? static_cast<std::uint32_t>(WEFT_OPEN_VERIFY) : 0u;
		options.weights_path = how.weights.empty() ? nullptr : how.weights.c_str();
		options.device = how.device;
		auto opened = std::make_shared<detail::Instance>(std::move(library), m);
		opened->context.device = how.device;
		status_ = done(
			[&](WeftStatus *s) { return m->open(m, &options, &opened->instance, s); });
		if (status_)
			of_ = std::move(opened);
	}
	detail::Instance &of() const
	{
		if (!of_)
			detail::mistake(error());
		return *of_;
	}
	Entry first() const
	{
		return of(), Entry(of_, 0);
	}
	std::uint32_t state(const char *name) const
	{
		for (std::uint32_t k = 0; k < of().table->nstate; k++)
			if (!std::strcmp(weft_state_info(of_->table, k)->name, name))
				return k;
		detail::mistake("there is no state " + std::string(name));
	}
	template <typename F> static Status done(F function)
	{
		WeftStatus status;
		status.message[0] = 0;
		const int code = function(&status);
		return code ? detail::failed(code, status.message) : Status();
	}
	Status weights(const std::vector<Named> &values, std::uint32_t flags,
		       Weights function) const
	{
		std::vector<const char *> name;
		std::vector<WeftTensor> value;
		WeftContext context = of_->context;
		context.flags |= flags;
		for (const Named &n : values) {
			name.push_back(n.name);
			value.push_back(n.value.tensor());
		}
		return done([&](WeftStatus *s) {
			return function(of_->instance, static_cast<std::uint32_t>(values.size()),
					name.data(), value.data(), &context, s);
		});
	}

	Status status_;
	std::shared_ptr<detail::Instance> of_;
};

} // namespace
} // namespace weft
#endif
