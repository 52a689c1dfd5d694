/* The page that shows a report: its parts lie in page.html, page.css and page.js. */
#include <string.h>

#include "tools/report/report.h"

extern const char report_html[], report_css[], report_js[]; /* embedded at build time */

/* Writes JSON that HTML does not end: "<", which stands in texts only, as an escape. */
static void put_data(FILE *f, const char *data, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (data[k] == '<')
			fputs("\\u003c", f);
		else
			fputc(data[k], f);
}

void report_page(FILE *f, const char *data, size_t n)
{
	static const char *const mark[] = {"@css@", "@data@", "@js@"};
	const char *rest = report_html;
	for (int k = 0; k < 3; k++) {
		const char *at = strstr(rest, mark[k]);
		fwrite(rest, 1, (size_t)(at - rest), f);
		rest = at + strlen(mark[k]);
		if (k == 0)
			fputs(report_css, f);
		else if (k == 1)
			put_data(f, data, n);
		else
			fputs(report_js, f);
	}
	fputs(rest, f);
}
