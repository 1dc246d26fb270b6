package studies

import (
	"slices"

	"github.com/xk6-broker/xk6-broker/extensions/xk6-broker/internal/tools/sweep"
)

// gridView is one column of the table, with a cell at each place.
type gridView struct {
	Title   header
	Corner  string
	Columns []string
	Rows    []gridRow
}

type gridRow struct {
	Name  string
	Cells []gridCell
}

type gridCell struct {
	cellView
	Mark  string
	To    string // the page of its first run
	Class string // its shade
}

// grids lays each column of a table out over two settings, in the order in which their values are first met.
func grids(t *Table, rows []Row, v *tableView, views []rowView) (all []gridView) {
	var down, across []string
	for i := range t.Cells {
		if value := t.Cells[i].setting(t.Grid[0]); !slices.Contains(down, value) {
			down = append(down, value)
		}
		if value := t.Cells[i].setting(t.Grid[1]); !slices.Contains(across, value) {
			across = append(across, value)
		}
	}
	for h, title := range v.Headers {
		column := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Title == title.Title })
		var medians []float64
		for _, row := range rows {
			if row.Values[column].Known {
				medians = append(medians, row.Values[column].Median)
			}
		}
		grid := gridView{Title: title, Corner: t.Grid[0] + " × " + t.Grid[1], Columns: across}
		known := 0
		for _, value := range down {
			line := gridRow{Name: value, Cells: make([]gridCell, len(across))}
			for i, row := range rows {
				if row.setting(t.Grid[0]) != value {
					continue
				}
				cell := gridCell{cellView: views[i].Cells[h]}
				if cell.Text != none {
					known++
				}
				if v := row.Values[column]; title.Of == measured && v.Known {
					cell.Class = sweep.Shade(slices.Min(medians), slices.Max(medians), v.Median)
				}
				if title.Of == measured {
					cell.Mark = views[i].Mark
					if len(views[i].Pages) > 0 {
						cell.To = views[i].Pages[0].To
					}
				}
				line.Cells[slices.Index(across, row.setting(t.Grid[1]))] = cell
			}
			grid.Rows = append(grid.Rows, line)
		}
		if ratio := title.Of != published && title.Of != measured; known > 1 || known == 1 && !ratio { // of the base alone there is nothing to lay out
			all = append(all, grid)
		}
	}
	return all
}
