/* Tensors of a C++ program: views of its memory, and results of calls (weft.hpp). */
#ifndef WEFT_VIEW_HPP
#define WEFT_VIEW_HPP

#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#if __cplusplus >= 202002L
#include <ranges>
#endif

#include "weft_model.h"

#if !defined(WEFT_NO_EXCEPTIONS) && !defined(__cpp_exceptions)
#define WEFT_NO_EXCEPTIONS 1
#endif

#ifndef WEFT_NO_EXCEPTIONS
#include <stdexcept>
#endif

namespace weft
{

/* Objects of both ways to report errors may meet in one program: their types differ. */
#ifdef WEFT_NO_EXCEPTIONS
inline namespace returned
{
#else
inline namespace thrown
{
#endif

/* ---- errors ---- */

#ifndef WEFT_NO_EXCEPTIONS
class Error : public std::runtime_error
{
      public:
	Error(int code, const std::string &why) : std::runtime_error(why), code_(code)
	{
	}
	/* Returns WEFT_ERR_INPUT, WEFT_ERR_CHECK, WEFT_ERR_BUSY, ... */
	int code() const noexcept
	{
		return code_;
	}

      private:
	int code_;
};
#endif

/* Whether a function succeeded, and why not. */
class Status
{
      public:
	Status() = default;
	Status(int code, const std::string &why) : code_(code), why_(new std::string(why))
	{
	}
	explicit operator bool() const noexcept
	{
		return code_ == WEFT_OK;
	}
	int code() const noexcept
	{
		return code_;
	}
	const char *error() const noexcept
	{
		return why_ ? why_->c_str() : "";
	}

      private:
	int code_ = WEFT_OK;
	std::shared_ptr<std::string> why_;
};

namespace detail
{

/* Reports a failure of the model or of the system: throws, or returns it as a status. */
[[gnu::noinline, gnu::cold]] inline Status failed(int code, const std::string &why)
{
#ifdef WEFT_NO_EXCEPTIONS
	return Status(code, why);
#else
	throw Error(code, why);
#endif
}

/* Reports a mistake of the program: throws, or prints the reason and aborts. */
[[noreturn, gnu::noinline, gnu::cold]] inline void mistake(const std::string &why)
{
#ifdef WEFT_NO_EXCEPTIONS
	std::fprintf(stderr, "weft.hpp: %s\n", why.c_str());
	std::abort();
#else
	throw Error(WEFT_ERR_ARGUMENT, why);
#endif
}

} // namespace detail

/* ---- element types ---- */

/* Elements of 16 bits, as stored. static_cast<float>(x) is the value. */
struct half {
	std::uint16_t bits;
	explicit operator float() const noexcept;
};
struct bfloat16 {
	std::uint16_t bits;
	explicit operator float() const noexcept
	{
		const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
		float value;
		std::memcpy(&value, &wide, sizeof value);
		return value;
	}
};

inline half::operator float() const noexcept
{
	const std::uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31u,
			    low = bits & 1023u;
	std::uint32_t wide = sign;
	float value;
	if (!exponent) {
		value = static_cast<float>(low) * 0x1p-24f;
		return sign ? -value : value;
	}
	wide |= low << 13 | (exponent == 31 ? 255u : exponent + 112u) << 23;
	std::memcpy(&value, &wide, sizeof value);
	return value;
}

/* The dtype of elements of type T. A program may specialise it for a type of its own. */
template <typename T, typename = void> struct Element;

namespace detail
{
template <int code, typename T> struct ElementOf {
	static constexpr WeftDType dtype = {static_cast<std::uint8_t>(code),
					    static_cast<std::uint8_t>(sizeof(T) * 8), 1};
};
/* char and the types of characters are text, not numbers. */
template <typename T>
inline constexpr bool is_number =
	std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, char> &&
#if defined(__cpp_char8_t)
	!std::is_same_v<T, char8_t> &&
#endif
	!std::is_same_v<T, wchar_t> && !std::is_same_v<T, char16_t> && !std::is_same_v<T, char32_t>;
} // namespace detail

template <> struct Element<float> : detail::ElementOf<WEFT_FLOAT, float> {
};
template <> struct Element<double> : detail::ElementOf<WEFT_FLOAT, double> {
};
template <> struct Element<half> : detail::ElementOf<WEFT_FLOAT, half> {
};
template <> struct Element<bfloat16> : detail::ElementOf<WEFT_BFLOAT, bfloat16> {
};
template <> struct Element<bool> : detail::ElementOf<WEFT_BOOL, bool> {
};
template <>
struct Element<std::complex<float>> : detail::ElementOf<WEFT_COMPLEX, std::complex<float>> {
};
template <>
struct Element<std::complex<double>> : detail::ElementOf<WEFT_COMPLEX, std::complex<double>> {
};
template <typename T>
struct Element<T, std::enable_if_t<detail::is_number<T>>>
    : detail::ElementOf<std::is_signed_v<T> ? WEFT_INT : WEFT_UINT, T> {
};
#if defined(__STDCPP_FLOAT16_T__)
template <> struct Element<decltype(0.0f16)> : detail::ElementOf<WEFT_FLOAT, half> {
};
#endif
#if defined(__STDCPP_BFLOAT16_T__)
template <> struct Element<decltype(0.0bf16)> : detail::ElementOf<WEFT_BFLOAT, bfloat16> {
};
#endif

/* Returns the short name of a dtype: "f32", "u8", "bool". */
inline std::string dtype_name(WeftDType d)
{
	switch (d.code) {
	case WEFT_INT:
		return "i" + std::to_string(d.bits);
	case WEFT_UINT:
		return "u" + std::to_string(d.bits);
	case WEFT_FLOAT:
		return "f" + std::to_string(d.bits);
	case WEFT_BFLOAT:
		return "bf16";
	case WEFT_COMPLEX:
		return "c" + std::to_string(d.bits);
	case WEFT_BOOL:
		return "bool";
	case WEFT_F8_E4M3FN:
		return "f8_e4m3fn";
	case WEFT_F8_E4M3FNUZ:
		return "f8_e4m3fnuz";
	case WEFT_F8_E5M2:
		return "f8_e5m2";
	case WEFT_F8_E5M2FNUZ:
		return "f8_e5m2fnuz";
	default:
		return "dtype " + std::to_string(d.code);
	}
}

/* ---- arrays and tensors ---- */

/* n elements of somebody else; converts to std::span in C++20. */
template <typename T> class Span
{
      public:
	Span(T *data, std::size_t n) : data_(data), n_(n)
	{
	}
	T *data() const noexcept
	{
		return data_;
	}
	std::size_t size() const noexcept
	{
		return n_;
	}
	bool empty() const noexcept
	{
		return !n_;
	}
	T *begin() const noexcept
	{
		return data_;
	}
	T *end() const noexcept
	{
		return data_ + n_;
	}
	T &operator[](std::size_t k) const noexcept
	{
		return data_[k];
	}

      private:
	T *data_;
	std::size_t n_;
};

/* The description of an input, output or state in the model's table. */
class Info
{
      public:
	Info(const WeftModel *m, const WeftTensorInfo *info) : model_(m), info_(info)
	{
	}
	const char *name() const noexcept
	{
		return info_->name;
	}
	const char *role() const noexcept
	{
		return info_->role;
	}
	WeftDType dtype() const noexcept
	{
		return info_->dtype;
	}
	std::size_t rank() const noexcept
	{
		return info_->rank;
	}
	/* Returns extent d, or -1 if the extent is known at run time only. */
	std::int64_t extent(std::size_t d) const noexcept
	{
		return weft_dim(model_, info_, static_cast<std::uint32_t>(d))->value;
	}
	/* Returns the text "logits: f32[s0, 10]". */
	std::string text() const
	{
		std::string t = std::string(name()) + ": " + dtype_name(dtype()) + "[";
		for (std::uint32_t d = 0; d < info_->rank; d++)
			t += std::string(d ? ", " : "") + weft_dim(model_, info_, d)->text;
		return t + "]";
	}

      private:
	const WeftModel *model_;
	const WeftTensorInfo *info_;
};

namespace detail
{

/* Returns the number of elements of a tensor; a negative extent counts as 0. */
inline std::size_t elements(const WeftTensor &t)
{
	std::size_t n = 1;
	for (std::int32_t d = 0; d < t.ndim; d++)
		n *= t.shape[d] > 0 ? static_cast<std::size_t>(t.shape[d]) : 0;
	return n;
}

inline bool same(WeftDType a, WeftDType b)
{
	return a.code == b.code && a.bits == b.bits;
}

inline std::string shape_text(const WeftTensor &t)
{
	std::string s = dtype_name(t.dtype) + "[";
	for (std::int32_t d = 0; d < t.ndim; d++)
		s += (d ? ", " : "") + std::to_string(t.shape[d]);
	return s + "]";
}

} // namespace detail

/* A result of a call. Refers to memory of the Results. */
class Output
{
      public:
	Output(const WeftTensor *t, const char *name) : t_(t), name_(name)
	{
	}
	const char *name() const noexcept
	{
		return name_;
	}
	WeftDType dtype() const noexcept
	{
		return t_->dtype;
	}
	Span<const std::int64_t> shape() const
	{
		return {t_->shape, static_cast<std::size_t>(t_->ndim)};
	}
	/* Returns the number of elements. */
	std::size_t size() const noexcept
	{
		return detail::elements(*t_);
	}
	void *data() const noexcept
	{
		return t_->data;
	}
	const WeftTensor &tensor() const noexcept
	{
		return *t_;
	}
	/* Returns the elements in row-major order. T must be the type of the dtype. */
	template <typename T> Span<T> as() const
	{
		if (!detail::same(Element<std::remove_const_t<T>>::dtype, t_->dtype))
			detail::mistake("output " + std::string(name_) + " is " +
					detail::shape_text(*t_) + ", not " +
					dtype_name(Element<std::remove_const_t<T>>::dtype));
		return {static_cast<T *>(t_->data), size()};
	}
	/* Returns the only element. */
	template <typename T> T item() const
	{
		const Span<T> all = as<T>();
		if (all.size() != 1)
			detail::mistake("item: output " + std::string(name_) + " is " +
					detail::shape_text(*t_));
		return all[0];
	}

      private:
	const WeftTensor *t_;
	const char *name_;
};

/* Memory of the caller as a tensor, which is an input of a call, or of `into` the place of an
 * output. Keeps a copy of the shape, and refers to the elements. */
class View
{
      public:
	enum { most_dimensions = 12 }; /* of any tensor of a model */

	View(const void *data, WeftDType dtype, const std::int64_t *shape, std::size_t rank)
	    : data_(data), dtype_(dtype), rank_(static_cast<std::int32_t>(rank))
	{
		if (rank > most_dimensions)
			detail::mistake("a view has at most 12 dimensions, and this one has " +
					std::to_string(rank));
		for (std::size_t d = 0; d < rank; d++)
			extent_[d] = shape[d];
	}
	View(const Output &y)
	    : View(y.data(), y.dtype(), y.tensor().shape, static_cast<std::size_t>(y.tensor().ndim))
	{
	}

	/* Sets the distance of neighbours along each dimension, in elements. */
	View strides(std::initializer_list<std::int64_t> steps) const
	{
		View v = *this;
		if (steps.size() != static_cast<std::size_t>(rank_))
			detail::mistake("strides: " + std::to_string(steps.size()) +
					" numbers for " + std::to_string(rank_) + " dimensions");
		v.strided_ = true;
		std::size_t d = 0;
		for (std::int64_t s : steps)
			v.stride_[d++] = s;
		return v;
	}
	/* Sets the device where the elements are. */
	View on(WeftDevice device) const
	{
		View v = *this;
		v.device_ = device;
		return v;
	}

	/* Whether the elements are const for the program: no output is written there. */
	bool constant() const noexcept
	{
		return constant_;
	}
	/* Marks the elements as const. */
	View as_const() const
	{
		View v = *this;
		v.constant_ = true;
		return v;
	}

	/* Returns the tensor, which refers to this view. */
	WeftTensor tensor() const noexcept
	{
		WeftTensor t;
		t.data = const_cast<void *>(data_);
		t.device = device_;
		t.ndim = rank_;
		t.dtype = dtype_;
		t.shape = const_cast<std::int64_t *>(extent_);
		t.strides = strided_ ? const_cast<std::int64_t *>(stride_) : nullptr;
		t.byte_offset = 0;
		return t;
	}

      private:
	const void *data_;
	WeftDevice device_ = {WEFT_CPU, 0};
	WeftDType dtype_;
	bool strided_ = false, constant_ = false;
	std::int32_t rank_;
	std::int64_t extent_[most_dimensions], stride_[most_dimensions];
};

/* Returns the view of row-major elements at `data`; their number is the product of the extents. */
template <typename T> View view(T *data, std::initializer_list<std::int64_t> shape)
{
	const View v(data, Element<std::remove_const_t<T>>::dtype, shape.begin(), shape.size());
	return std::is_const_v<T> ? v.as_const() : v;
}

/* Returns the view of a scalar: a tensor without dimensions. */
template <typename P, std::enable_if_t<std::is_pointer_v<P>, int> = 0> View view(const P &data)
{
	return view(data, {});
}

/* Returns the view of an array with one dimension. */
template <typename T, std::size_t n> View view(T (&array)[n])
{
	return view(&array[0], {static_cast<std::int64_t>(n)});
}

/* Returns the view of a container of consecutive elements (std::vector, std::array, std::span) with
 * a shape, of which the container has all elements. A temporary container is refused: a view refers
 * to the elements. */
template <typename C, typename T = std::remove_pointer_t<decltype(std::declval<C &>().data())>>
View view(C &c, std::initializer_list<std::int64_t> shape)
{
	std::size_t n = 1;
	for (std::int64_t d : shape)
		n *= d > 0 ? static_cast<std::size_t>(d) : 0;
	const View v = view(c.data(), shape);
	if (n != c.size())
		detail::mistake("view: a container of " + std::to_string(c.size()) +
				" elements for a tensor " + detail::shape_text(v.tensor()));
	return v;
}

/* Returns the view of a container with one dimension. */
template <typename C, typename T = std::remove_pointer_t<decltype(std::declval<C &>().data())>>
View view(C &c)
{
	return view(c.data(), {static_cast<std::int64_t>(c.size())});
}
template <typename C, typename T = std::remove_pointer_t<decltype(std::declval<C &>().data())>>
View view(const C &&, std::initializer_list<std::int64_t>) = delete;
template <typename C, typename T = std::remove_pointer_t<decltype(std::declval<C &>().data())>>
View view(const C &&) = delete;

/* An argument by name. */
struct Named {
	const char *name;
	View value;
};

} // namespace
} // namespace weft

#if defined(__cpp_lib_ranges)
/* Views of elements outlive a Span: a temporary one converts to std::span. */
template <typename T>
inline constexpr bool std::ranges::enable_borrowed_range<weft::Span<T>> = true;
#endif
#endif
