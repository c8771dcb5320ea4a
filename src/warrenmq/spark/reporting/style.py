"""How the page looks: one style sheet, in the light and in the dark."""

from __future__ import annotations

STYLE = """
:root{--paper:#fbfaf8;--card:#fff;--ink:#1f2328;--quiet:#6b7280;--line:#e6e3de;--good:#2f9e6e;--open:#3b82c4;--on:#c9912b;
--bad:#d1495b;--c0:#3b82c4;--c1:#8a63c9;--c2:#2f9e6e;--c3:#d1495b;--c4:#c9912b;--c5:#5f6b7a;--c6:#a23e8c;--c7:#7a5230}
@media(prefers-color-scheme:dark){:root{--paper:#14171b;--card:#1c2026;--ink:#e6e8eb;--quiet:#949ca8;--line:#2c323a;
--good:#4cc38a;--open:#6aaef0;--on:#e3b454;--bad:#f0788a;--c0:#6aaef0;--c1:#b391f0;--c2:#4cc38a;--c3:#f0788a;--c4:#e3b454;
--c5:#9aa5b4;--c6:#e07fc6;--c7:#c39a72}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:980px;margin:0 auto;padding:32px 20px 64px}
header{display:flex;align-items:baseline;justify-content:space-between;gap:16px;flex-wrap:wrap}
h1{font-size:28px;letter-spacing:-.02em;margin:0}header p{margin:0;color:var(--quiet)}
h2{font-size:18px;margin:0 0 12px}
h2 small,figcaption small{font-weight:400;font-size:13px;color:var(--quiet);margin-left:6px}
h3{font-size:13px;font-weight:600;color:var(--quiet);margin:14px 0 6px}
section,.tiles>div,.verdict{background:var(--card);border:1px solid var(--line);border-radius:10px}
section{padding:18px 20px;margin-top:16px;overflow-x:auto}
.verdict{padding:14px 20px;margin:18px 0;border-left-width:5px}.verdict ul{margin:6px 0 0;padding-left:20px}
.verdict.good{border-left-color:var(--good)}.verdict.bad{border-left-color:var(--bad)}.verdict.bad b{color:var(--bad)}
details{color:var(--quiet);margin:0 0 16px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px}
.tiles>div{padding:12px 16px;color:var(--quiet);font-size:13px}
.tiles b{display:block;color:var(--ink);font-size:24px;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
svg{display:block;width:100%;height:auto}svg text{fill:var(--quiet);font-size:11px;font-variant-numeric:tabular-nums}
svg.bar{height:22px}td svg.bar{height:12px}
.grid{stroke:var(--line)}.line{fill:none;stroke-width:2;stroke-linejoin:round}.area{opacity:.12;stroke:none}
.hover{fill:transparent}.hover:hover{fill:var(--quiet);fill-opacity:.12}
.band{stroke:none;fill:var(--c0)}.band.far{opacity:.16}.band.near{opacity:.28}
.line.c0{stroke:var(--c0)}.line.c1{stroke:var(--c1)}.line.c2{stroke:var(--c2)}.line.c3{stroke:var(--c3)}
.line.c4{stroke:var(--c4)}.line.c5{stroke:var(--c5)}.line.c6{stroke:var(--c6)}.line.c7{stroke:var(--c7)}.area.c0{fill:var(--c0)}
.k-good{fill:var(--good)}.k-open{fill:var(--open)}.k-on{fill:var(--on)}.k-bad{fill:var(--bad)}
.dot{display:inline-block;width:10px;height:10px;border-radius:3px;margin:0 5px 0 10px;background:var(--quiet)}
.dot.k-good,.dot.c2{background:var(--good)}.dot.k-open,.dot.c0{background:var(--open)}.dot.k-on,.dot.c4{background:var(--on)}
.dot.k-bad,.dot.c3{background:var(--bad)}.dot.c1{background:var(--c1)}
.dot.c5{background:var(--c5)}.dot.c6{background:var(--c6)}
.dot.c7{background:var(--c7)}.dot.near{background:var(--c0);opacity:.45}.dot.far{background:var(--c0);opacity:.2}
.terms,.legend{margin:8px 0 0;font-variant-numeric:tabular-nums}
.terms span{white-space:nowrap}.legend{color:var(--quiet)}
.pair{display:grid;grid-template-columns:repeat(auto-fit,minmax(400px,1fr));gap:16px 24px}
figure{margin:0;min-width:0}figcaption{font-size:13px;margin-bottom:4px}
table{width:100%;border-collapse:collapse;font-size:14px}
th{text-align:left;font-weight:600;font-size:12px;color:var(--quiet);
padding:4px 10px 6px 0;border-bottom:1px solid var(--line)}
td{padding:6px 10px 6px 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}tr:last-child td{border-bottom:0}
.num{font-variant-numeric:tabular-nums;white-space:nowrap}.wide{width:60%}.quiet{color:var(--quiet)}
code{font:12px ui-monospace,Menlo,Consolas,monospace;color:var(--quiet);margin-left:6px}a{color:var(--open)}
@media print{section,.tiles>div,.verdict{break-inside:avoid}}
"""
